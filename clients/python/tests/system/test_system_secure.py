"""A router that guards its port: TLS under authorities of its own, and callers known by their tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from whole import System

import berthmaster as bm

TURN: dict[str, Any] = {"text": "x", "sampling_params": {"max_new_tokens": 4, "ignore_eos": True}}


def test_worker_in_a_pod_generates(system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service account's folder names the namespace; the token for the router is one of its own."""
    account, mounted = tmp_path / "account", tmp_path / "mounted"
    for folder in (account, mounted):
        folder.mkdir()
    (account / "namespace").write_text("default")
    (account / "token").write_text(system.overt)
    (mounted / "token").write_text(system.token + "\n")
    monkeypatch.setattr("berthmaster.config.SERVICE_ACCOUNT", str(account))
    config = bm.PoolConfig.in_cluster(system.router, "policy", ca_file=system.ca, token_file=str(mounted / "token"))
    with bm.SyncPool(config) as pool, pool.session("s1", sender="train") as session:
        result = session.generate(**TURN, wait=120)
        assert result.output_tokens == 4 and result.release_error is None
    # The account's own token is for another audience, of which this router is told to take none.
    config = bm.PoolConfig.in_cluster(system.router, "policy", ca_file=system.ca)
    with bm.SyncPool(config) as pool, pytest.raises(bm.Unauthenticated, match="audience|token"):
        pool.session("s1", sender="train", epoch=1).generate(**TURN)


def test_token_that_is_replaced_is_shown_from_then_on(system: System, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("made-up")
    with bm.SyncPool(system.config(token="", token_file=str(token))) as pool:
        with pytest.raises(bm.Unauthenticated):
            pool.session("s2", sender="train", epoch=1).generate(**TURN)
        token.write_text(system.token)
        with pool.session("s2", sender="train") as session:
            assert session.generate(**TURN, wait=120).output_tokens == 4


@pytest.mark.parametrize(("token", "refusal", "advice"), [
    ("", bm.Unauthenticated, "token"), ("made-up", bm.Unauthenticated, "token"),
])
def test_caller_without_a_good_token_is_told_so(
    system: System, token: str, refusal: type[bm.Problem], advice: str
) -> None:
    with bm.SyncPool(system.config(token=token)) as pool, pytest.raises(refusal, match=advice):
        pool.session("s3", sender="train", epoch=1).generate(**TURN)


def test_caller_without_the_right_is_told_so(system: System) -> None:
    with bm.SyncPool(system.config(token=system.stranger)) as pool, pytest.raises(bm.Forbidden) as refused:
        pool.session("s4", sender="train", epoch=1).generate(**TURN)
    assert "leases" in refused.value.detail or "train" in refused.value.detail


def test_worker_is_not_another_sender(system: System) -> None:
    with bm.SyncPool(system.config()) as pool, pytest.raises(bm.Forbidden, match="subjects"):
        pool.session("s5", sender="eval", epoch=1).generate(**TURN)


def test_router_of_other_authorities_is_not_trusted(system: System) -> None:
    # The system's authorities have nothing to do with the router's.
    with bm.SyncPool(system.config(ca_file="", retry_for=0.001)) as pool, pytest.raises(bm.Untrusted, match="berthmaster-ca"):
        pool.session("s6", sender="train", epoch=1).generate(**TURN)


def test_file_without_authorities_is_a_configuration_at_fault(system: System, tmp_path: Path) -> None:
    for file in (tmp_path / "missing.crt", tmp_path / "empty.crt"):
        (tmp_path / "empty.crt").write_text("no certificate\n")
        with bm.SyncPool(system.config(ca_file=str(file))) as pool, pytest.raises(bm.ConfigError) as refused:
            pool.session("s7", sender="train", epoch=1).generate(**TURN)
        assert refused.value.field == "ca_file"
