"""Authorities in a file that is replaced."""

from __future__ import annotations

from pathlib import Path

import pytest
from player import Run

from berthmaster._trust import Trust
from berthmaster.errors import ConfigError


def authority(fakepool: str) -> str:
    """One, as PEM, that nobody else has."""
    run = Run(fakepool, {"whole": {"name": "of-its-own", "trust": {"authority": "known"}, "do": [{"call": "endSession"}]}})
    text = Path(run.offer["authorities"]).read_text()
    run.judge([{"result": "Done"}])
    return text


def test_file_that_changes_is_read_again_and_one_that_breaks_counts_as_it_was(fakepool: str, tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    trust = Trust("ca_file", str(file))
    with pytest.raises(ConfigError, match="ca_file"):
        trust.context()
    one, two = authority(fakepool), authority(fakepool)
    file.write_text(one)
    first = trust.context()
    assert trust.context() is first and len(first.get_ca_certs()) == 1
    for broken in ("", "-----BEGIN CERTIFICATE-----\ntorn"):
        file.write_text(broken)
        assert trust.context() is first
    file.unlink()
    assert trust.context() is first
    file.write_text(one + two)
    both = trust.context()
    assert both is not first and len(both.get_ca_certs()) == 2


def test_without_a_file_the_system_decides() -> None:
    trust = Trust("ca_file", "")
    assert trust.context() is trust.context()
