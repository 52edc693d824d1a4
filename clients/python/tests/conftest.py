"""Starts the programs that the tests talk to: the pool that plays the shared scenarios, and a real one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from whole import System

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(os.environ.get("BERTHMASTER_TEST_PROGRAMS", ROOT / ".cache" / "python-client"))


# Tests of a whole system need one, which test/e2e has.
collect_ignore = [] if "BERTHMASTER_TEST_ROUTER" in os.environ else ["system"]


@contextmanager
def program(name: str) -> Iterator[str]:
    """Runs a program whose first line of output says where it is; it ends with its standard input."""
    path = PROGRAMS / name
    if not path.exists():
        pytest.fail(f"{path} is missing: run the tests with clients/python/run-tests.sh, which builds it")
    with subprocess.Popen([str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(timeout=60)


@pytest.fixture(scope="session")
def fakepool() -> Iterator[str]:
    with program("fakepool") as where:
        yield where


@pytest.fixture(scope="session")
def system() -> System:
    return System.told()
