#!/bin/sh
# Tests the Python client: makes a virtual environment, builds the programs that the tests talk to, and
# runs mypy and pytest. Everything made is in .cache, next to the module's go.mod. Arguments go to pytest.
#
# PYTHON is the interpreter, python3 unless it is set.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache="$root/.cache/python-client"
mkdir -p "$cache"

# The environment is made again when what it is made of has changed.
stamp="$cache/venv/made-of"
if ! cmp -s "$here/pyproject.toml" "$stamp"; then
  rm -rf "$cache/venv"
  "${PYTHON:-python3}" -m venv "$cache/venv"
  "$cache/venv/bin/pip" install -q --disable-pip-version-check -e "$here[test]"
  cp "$here/pyproject.toml" "$stamp"
fi

(cd "$root" && go build -o "$cache/" ./clients/conformance/cmd/...)
cd "$here"
export PYTHONPYCACHEPREFIX="$cache/pycache"
"$cache/venv/bin/mypy" --cache-dir "$cache/mypy"
# The router is on loopback, where no proxy reaches.
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
exec "$cache/venv/bin/python" -m pytest -o cache_dir="$cache/pytest" "$@"
