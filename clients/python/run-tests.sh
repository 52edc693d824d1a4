#!/bin/sh
# Tests the Python client: makes a virtual environment, builds the programs that the tests talk to, and
# runs mypy and pytest. Everything made is in .cache, next to the module's go.mod. Arguments go to pytest.
# What needs a whole system, in tests/system, is left to test/e2e, which has one.
#
# PYTHON is the interpreter, python3 unless it is set.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cache="$root/.cache/python-client"
venv=$("$here/venv.sh")

(cd "$root" && go build -o "$cache/" ./clients/conformance/cmd/...)
cd "$here"
export PYTHONPYCACHEPREFIX="$cache/pycache"
"$venv/bin/mypy" --cache-dir "$cache/mypy"
# The router is on loopback, where no proxy reaches.
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
exec "$venv/bin/python" -m pytest -o cache_dir="$cache/pytest" "$@"
