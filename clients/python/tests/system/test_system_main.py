"""This client passes the main scenarios of the shared table on a real pool: the manager, an API server and
simulated engines."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx
import pytest
from player import Player, Run, options

import berthmaster as bm

DESK = os.environ["BERTHMASTER_TEST_DESK"]
TABLE: list[dict[str, Any]] = httpx.get(DESK + "/scenarios", trust_env=False).json()


@pytest.mark.parametrize("scenario", TABLE, ids=lambda s: s["name"])
def test_client_passes_main_scenario(scenario: dict[str, Any]) -> None:
    asyncio.run(_play(scenario))


async def _play(scenario: dict[str, Any]) -> None:
    settings = scenario.get("client", {})
    run = Run(DESK, {"scenario": scenario["name"]})
    async with bm.Pool(run.config(**options(settings))) as pool:
        reports = await Player(run, pool, settings).play(scenario["do"])
        violations = await asyncio.to_thread(run.judge, reports)
    assert violations == []


def test_table_is_there() -> None:
    assert len(TABLE) >= 20
