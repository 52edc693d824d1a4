"""A pool in earnest: the router's server and simulated engines, in a program of their own."""

from __future__ import annotations

import threading
import time
from typing import Any

import httpx

import berthmaster as bm

PATIENCE = 60.0


class RealPool:
    """What its desk offers to tests."""

    def __init__(self, where: str) -> None:
        self._http = httpx.Client(base_url=where, timeout=90, trust_env=False)
        offer = self._http.get("/").json()
        self.base_url: str = offer["baseURL"]
        self.engines: dict[str, str] = offer["engines"]
        self.told: list[dict[str, Any]] = []
        """The client's own log: what it was told of which rid."""

    def close(self) -> None:
        self._http.close()

    def config(self, **options: Any) -> bm.PoolConfig:
        return bm.PoolConfig(self.base_url, **options)

    def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = self._http.post(path, json=body or {})
        assert answer.status_code == 200, answer.text
        members: dict[str, Any] = answer.json()
        return members

    def arm(self, *faults: dict[str, Any]) -> None:
        """Lets every engine misbehave."""
        for url in self.engines.values():
            answer = self._http.post(url + "/sim/faults", json=list(faults))
            assert answer.status_code == 200, answer.text

    def disarm(self) -> None:
        for url in self.engines.values():
            self._http.delete(url + "/sim/faults")

    def abort_all(self) -> None:
        for url in self.engines.values():
            self._http.post(url + "/abort_request", json={"abort_all": True})

    def counted(self) -> dict[str, int]:
        counts: dict[str, int] = self._http.get("/counted").json()
        return counts

    def until(self, **wanted: int) -> None:
        """Waits until the counts are so."""
        deadline = time.monotonic() + PATIENCE
        while wanted.items() - (counts := self.counted()).items():
            assert time.monotonic() < deadline, f"{counts}, in vain waited for {wanted}"
            threading.Event().wait(0.02)

    def tell(self, session: str, turn: int, lease: bm.Lease, event: str) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{time.time_ns() % 10**9:09d}Z"
        self.told.append({"time": now, "session": session, "turn": str(turn), "rid": lease.rid, "event": event})

    def verdict(self) -> dict[str, Any]:
        """What the engines executed, once nothing is counted."""
        return self.post("/verdict", {"client": self.told})


def turn(session: str, number: int, tokens: int = 20) -> dict[str, Any]:
    """What generate is given for one turn, which the engines' logs can tell from others."""
    return {
        "text": f"{session} turn {number}", "session_id": session, "headers": {"X-Turn": str(number)}, "wait": PATIENCE,
        "sampling_params": {"max_new_tokens": tokens, "ignore_eos": True},
    }


LONG = 1_000_000
"""More tokens than any engine generates within a test."""
