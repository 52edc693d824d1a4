#!/bin/sh
# Builds the manager twice, from two copies of the sources in two folders, and fails unless both are the same,
# byte by byte: nothing of the place, the time or the user is in it.
set -eu
cd "$(dirname "$0")/../.."
rooms=$(mktemp -d)
trap 'rm -rf "$rooms"' EXIT
for copy in one two/deeper; do
	mkdir -p "$rooms/$copy"
	git ls-files --cached --others --exclude-standard -- go.mod go.sum api client cmd internal |
		xargs -d '\n' cp --parents -t "$rooms/$copy"
	(cd "$rooms/$copy" && CGO_ENABLED=0 go build -trimpath -buildvcs=false -o manager ./cmd/manager)
done
one=$(sha256sum <"$rooms/one/manager")
two=$(sha256sum <"$rooms/two/deeper/manager")
if [ "$one" != "$two" ]; then
	echo "reproducible: two builds differ: $one and $two" >&2
	exit 1
fi
echo "reproducible: two builds are the same, ${one%% *}"
