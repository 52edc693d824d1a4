"""The main scenarios against the router's own server and simulated engines, whose logs say what was
executed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import pytest
from conftest import program
from realpool import LONG, PATIENCE, RealPool, turn

import berthmaster as bm


@pytest.fixture
def real() -> Iterator[RealPool]:
    with program("realpool") as where:
        real = RealPool(where)
        yield real
        real.close()


def test_sessions_stay_on_their_engines_and_each_turn_is_executed_once(real: RealPool) -> None:
    async def trajectory(pool: bm.Pool, name: str) -> set[str]:
        homes = set()
        async with pool.session(name, sender="train", group="g") as session:
            for number in range(3):
                result = await session.generate(**turn(name, number))
                assert result.output_tokens == 20 and result.versions.replied == "default" and result.release_error is None
                assert len(result.output_ids) == 20 and len(result.logprobs) == 20
                homes.add(result.backend)
        return homes

    async def story() -> list[set[str]]:
        async with bm.Pool(real.config()) as pool:
            return await asyncio.gather(*(trajectory(pool, f"s{i}") for i in range(12)))

    homes = asyncio.run(story())
    assert all(len(engines) == 1 for engines in homes) and len(set.union(*homes)) == 3
    assert real.verdict() == {"turns": 36, "executions": 36, "violations": []}
    assert real.counted() == {"outstanding": 0, "sessions": 0, "started": 36}


def test_reset_connection_is_ambiguous_then_dead_and_may_be_made_again(real: RealPool) -> None:
    real.arm({"kind": "reset", "paths": ["/generate"], "bytes": 10, "count": 1})
    with bm.SyncPool(real.config()) as pool, pool.session("s", sender="train") as session:
        with pytest.raises(bm.Ambiguous) as cut:
            session.generate(**turn("s", 0, LONG), stream=True)
        assert cut.value.fate is bm.Fate.DEAD and cut.value.may_repeat
        real.tell("s", 0, cut.value.lease, "dead")
        real.disarm()
        assert session.generate(**turn("s", 0)).output_tokens == 20
    # Without the client's word that it was told Dead, the second execution would be one too many.
    assert len(real.post("/verdict", {"client": []})["violations"]) == 1
    assert real.verdict() == {"turns": 1, "executions": 2, "violations": []}


def test_caller_that_goes_away_leaves_a_dead_execution(real: RealPool) -> None:
    async def story() -> None:
        async with bm.Pool(real.config()) as pool:
            session = pool.session("s", sender="train")
            generating = asyncio.create_task(session.generate(**turn("s", 0, LONG)))
            await asyncio.to_thread(real.until, started=1)
            generating.cancel()
            with suppress(asyncio.CancelledError):
                await generating
            lease = session.last_lease
            assert lease is not None
            assert (await asyncio.wait_for(lease.await_fate(), PATIENCE)).fate is bm.Fate.DEAD

    asyncio.run(story())
    assert real.verdict()["violations"] == []


def test_fenced_sender_waits_and_goes_on_when_it_is_opened(real: RealPool) -> None:
    real.post("/fleet", {"access": "Fenced"})

    async def story() -> None:
        async with bm.Pool(real.config()) as pool, pool.session("s", sender="train") as session:
            with pytest.raises(bm.Fenced):
                await session.generate(**{**turn("s", 0), "wait": 0})
            waiting = asyncio.create_task(session.generate(**turn("s", 0)))
            await asyncio.to_thread(real.post, "/fleet", {"access": "Open"})
            assert (await waiting).output_tokens == 20

    asyncio.run(story())
    assert real.verdict() == {"turns": 1, "executions": 1, "violations": []}


def test_raised_epoch_cuts_what_runs_and_ends_the_session(real: RealPool) -> None:
    async def story() -> None:
        async with bm.Pool(real.config()) as pool, pool.session("s", sender="train") as session:
            generating = asyncio.create_task(session.generate(**turn("s", 0, LONG)))
            await asyncio.to_thread(real.until, started=1)
            await asyncio.to_thread(real.post, "/fleet", {"epoch": 2})
            # Either the client hears of it first and cuts, or the engine, which the router lets abort.
            with pytest.raises((bm.Cancelled, bm.Aborted)) as cut:
                await generating
            assert isinstance(cut.value, bm.Aborted) or isinstance(cut.value.__cause__, bm.StaleEpoch)
            with pytest.raises(bm.StaleEpoch):
                await session.generate(**turn("s", 1))
            async with pool.session("s2", sender="train") as later:
                assert (await later.generate(**turn("s2", 0))).lease.epoch == 2

    asyncio.run(story())
    assert real.verdict()["violations"] == []


def test_lease_lives_on_under_a_router_that_took_over(real: RealPool) -> None:
    """The new router knows nothing but what the client's token says."""

    async def story() -> None:
        async with bm.Pool(real.config()) as pool, pool.session("s", sender="train") as session:
            generating = asyncio.create_task(session.generate(**turn("s", 0, LONG)))
            await asyncio.to_thread(real.until, started=1)
            await asyncio.to_thread(real.post, "/takeover")
            await asyncio.to_thread(real.until, outstanding=1)
            await asyncio.to_thread(real.abort_all)
            # The engine's own end is reported to the router that took over, which answers.
            with pytest.raises(bm.Aborted) as ended:
                await generating
            assert ended.value.release_error is None
            result = await session.generate(**turn("s", 1))
            lease = session.last_lease
            assert lease is not None and lease.term == 2 and result.release_error is None

    asyncio.run(story())
    verdict = real.verdict()
    assert verdict["violations"] == [] and verdict["executions"] == 2


def test_acquire_after_a_take_over_gets_the_same_lease_by_its_token(real: RealPool) -> None:
    with bm.SyncPool(real.config()) as pool:
        lease = pool.acquire(bm.LeaseRequest("r1", "s", "train", 0, 1, wait=PATIENCE))
        real.post("/takeover")
        again = pool.acquire(bm.LeaseRequest("r1", "s", "train", 0, 1, token=lease.token, wait=PATIENCE))
        assert again.rid == lease.rid and again.backend == lease.backend
        pool.release(again, bm.Report(bm.Outcome.NOT_SENT))
    assert real.verdict() == {"turns": 0, "executions": 0, "violations": []}
