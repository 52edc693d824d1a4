#!/bin/sh
# Makes the virtual environment of the Python client's tests in .cache, next to the module's go.mod, and says
# where it is. It is made again when what it is made of has changed.
#
# PYTHON is the interpreter, python3 unless it is set.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache="$here/../../.cache/python-client"
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

# Several may ask at once.
if command -v flock >/dev/null; then
  exec 9>"$cache/lock"
  flock 9
fi
stamp="$cache/venv/made-of"
if ! cmp -s "$here/pyproject.toml" "$stamp"; then
  rm -rf "$cache/venv"
  "${PYTHON:-python3}" -m venv "$cache/venv"
  "$cache/venv/bin/pip" install -q --disable-pip-version-check -e "$here[test]" >&2
  cp "$here/pyproject.toml" "$stamp"
fi
echo "$cache/venv"
