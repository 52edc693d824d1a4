"""This client passes every scenario of the shared table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from player import Player, Run, options

import asyncio
import berthmaster as bm

SCENARIOS = Path(__file__).resolve().parents[2] / "conformance" / "scenarios"
TABLE: list[dict[str, Any]] = [s for file in sorted(SCENARIOS.glob("*.json")) for s in json.loads(file.read_text())]


@pytest.mark.parametrize("scenario", TABLE, ids=lambda s: s["name"])
def test_client_passes_scenario(fakepool: str, scenario: dict[str, Any]) -> None:
    asyncio.run(_play(fakepool, scenario))


async def _play(fakepool: str, scenario: dict[str, Any]) -> None:
    settings = scenario.get("client", {})
    run = Run(fakepool, {"scenario": scenario["name"]})
    async with bm.Pool(run.config(**options(settings))) as pool:
        reports = await Player(run, pool, settings).play(scenario["do"])
        violations = await asyncio.to_thread(run.judge, reports)
    assert violations == []


def test_table_is_there() -> None:
    assert len(TABLE) >= 50
