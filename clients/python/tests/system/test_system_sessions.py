"""Sessions on a real pool that no table of steps can tell of: many at once, and programs that fail."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from whole import System

import berthmaster as bm

PATIENCE = 120.0


def turn(session: str, number: int) -> dict[str, Any]:
    """What generate is given for one turn, which the engines' logs can tell from others."""
    return {
        "text": f"{session} turn {number}", "session_id": session, "headers": {"X-Turn": str(number)}, "wait": PATIENCE,
        "sampling_params": {"max_new_tokens": 20, "ignore_eos": True},
    }


def executed(prefix: str) -> Counter[tuple[str, str]]:
    """How often the engines have begun each turn of the sessions so named, by their own records."""
    begun: Counter[tuple[str, str]] = Counter()
    for file in Path(os.environ["BERTHMASTER_TEST_EXECUTIONS"]).glob("*.exec.jsonl"):
        # A last line that is not whole yet is not read.
        for record in [json.loads(line) for line in file.read_text().splitlines(True) if line.endswith("\n")]:
            if record["event"] == "start" and record.get("session", "").startswith(prefix):
                begun[record["session"], record["turn"]] += 1
    return begun


async def counts(pool: bm.Pool) -> tuple[int, int]:
    """How many sessions and executions the router counts."""
    live = await pool.live()
    return live["sessions"], sum(backend["outstanding"] for backend in live["backends"])


def test_sessions_stay_on_their_engines_and_each_turn_is_executed_once(system: System) -> None:
    async def trajectory(pool: bm.Pool, name: str) -> str:
        async with pool.session(name, sender="train", group="g") as session:
            results = [await session.generate(**turn(name, number)) for number in range(3)]
        assert all(len(r.output_ids) == len(r.logprobs) == r.output_tokens == 20 and r.release_error is None for r in results)
        (home,) = {result.backend for result in results}
        return home

    async def story() -> None:
        async with bm.Pool(system.config()) as pool:
            homes = Counter(await asyncio.gather(*(trajectory(pool, f"many-{i}") for i in range(12))))
            assert len(homes) == len(system.engines) and await counts(pool) == (0, 0)

    asyncio.run(story())
    assert executed("many-") == {(f"many-{i}", str(number)): 1 for i in range(12) for number in range(3)}


@pytest.mark.parametrize("error", [ValueError("a tool failed"), asyncio.CancelledError()])
def test_session_whose_program_fails_or_is_cancelled_is_over(system: System, error: BaseException) -> None:
    name = f"fails-{type(error).__name__}"

    async def story() -> None:
        async with bm.Pool(system.config()) as pool:
            with pytest.raises(type(error)):
                async with pool.session(name, sender="train") as session:
                    await session.generate(**turn(name, 0))
                    raise error
            assert session.end_error is None and await counts(pool) == (0, 0)

    asyncio.run(story())
    assert executed(name) == {(name, "0"): 1}
