"""Updates of weights on a real pool: the resource and its validation, the manager, simulated engines."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from whole import System

import berthmaster as bm
from berthmaster.kube import KubeAPI, KubeConfig
from berthmaster.weights import FAILED, UNDER_WAY, OwnerConflict, PoolName, UpdateError, WeightsUpdate

PATIENCE = 120.0
POOL = PoolName("default", "policy").path()


class Trainer:
    """Whoever trains: it may get and patch the pool, and push weights to engines."""

    def __init__(self, system: System) -> None:
        found = KubeConfig.from_file(system.kubeconfig)
        self.kube = KubeConfig(found.server, token=os.environ["BERTHMASTER_TEST_TRAINER"], ca=found.ca)
        self.owner = found
        self.engines = set(system.engines)

    def update(self, pool: bm.Pool, version: str, **options: Any) -> AbstractAsyncContextManager[WeightsUpdate]:
        return pool.weights_update(version, ["train"], kube=self.kube, fence_timeout=PATIENCE, publish_timeout=PATIENCE, **options)

    async def push(self, update: WeightsUpdate) -> None:
        assert {engine.url for engine in update.engines} == self.engines
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as http:
            for engine in update.engines:
                body = {"new_version": update.version, "abort_all_requests": False}
                (await http.post(engine.url + "/update_weight_version", json=body)).raise_for_status()

    async def pool(self) -> dict[str, Any]:
        async with KubeAPI(self.kube) as api:
            return await api.get(POOL)

    async def sender(self, name: str) -> str:
        """What the status says of a sender."""
        return next(str(s["access"]) for s in (await self.pool())["status"]["senders"] if s["name"] == name)

    async def notes(self) -> dict[str, str]:
        return (await self.pool())["metadata"].get("annotations") or {}


@pytest.fixture
def trainer(system: System) -> Trainer:
    return Trainer(system)


def params(tokens: int) -> dict[str, Any]:
    return {"text": "x", "sampling_params": {"max_new_tokens": tokens, "ignore_eos": True}}


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(PATIENCE):
        while not await holds():
            await asyncio.sleep(0.05)


def events(session: str) -> list[str]:
    """What the engines have written down of a session, in order."""
    records: list[dict[str, Any]] = []
    for file in Path(os.environ["BERTHMASTER_TEST_EXECUTIONS"]).glob("*.exec.jsonl"):
        # A last line that is not whole yet is not read.
        records += [json.loads(line) for line in file.read_text().splitlines(True) if line.endswith("\n")]
    return [str(r["event"]) for r in sorted(records, key=lambda r: str(r["time"])) if r.get("session") == session]


class Others:
    """Sessions of another sender, which go on whatever happens."""

    def __init__(self) -> None:
        self.turns = 0

    async def go_on(self, more: int = 3) -> None:
        """Waits until they have made so many more turns, from the first word to the last."""
        seen = self.turns
        await until(lambda: _is(self.turns > seen + more))


async def _is(value: bool) -> bool:
    return value


@asynccontextmanager
async def others(system: System) -> AsyncIterator[Others]:
    going = Others()

    async def play(pool: bm.Pool) -> None:
        async with pool.session("of-eval", sender="eval") as session:
            while True:
                await session.generate(**params(4), wait=PATIENCE)
                going.turns += 1

    async with bm.Pool(system.config(token=os.environ["BERTHMASTER_TEST_EVALUATOR"])) as pool:
        task = asyncio.create_task(play(pool))
        try:
            yield going
            assert not task.done(), "the other sender failed"
        finally:
            task.cancel()
            await asyncio.wait({task})
    if task.cancelled():
        return
    task.result()


def test_update_fences_waits_publishes_and_opens_while_others_go_on(system: System, trainer: Trainer) -> None:
    async def story() -> None:
        async with bm.Pool(system.config()) as pool, others(system) as going, pool.session("w1", sender="train") as session:
            await going.go_on()
            running = asyncio.create_task(session.generate(**params(4000), wait=PATIENCE, session_id="w1"))
            await until(lambda: _is(events("w1") == ["start"]))
            async with trainer.update(pool, "step-42") as update:
                # By the engines' own records nothing of the sender's runs, and the status says so.
                assert events("w1") == ["start", "finish"] and await trainer.sender("train") == "Fenced"
                await asyncio.wait_for(running, PATIENCE)  # it has only to reach its caller
                assert UNDER_WAY in await trainer.notes()
                with pytest.raises(bm.Fenced):
                    await session.generate(**params(4))
                await going.go_on()
                await trainer.push(update)
                assert (await trainer.pool())["status"].get("weights", {}).get("published", "") == ""
            told = await trainer.pool()
            assert told["status"]["weights"]["published"] == "step-42" and told["spec"]["weights"]["source"] == "External"
            assert not {UNDER_WAY, FAILED} & set(await trainer.notes())
            result = await session.generate(**params(4), wait=PATIENCE)
            assert result.versions == bm.VersionSpan("step-42", "step-42", False) and result.release_error is None
            await going.go_on()

    asyncio.run(story())


@pytest.mark.parametrize("error", [RuntimeError("the push failed"), asyncio.CancelledError()])
def test_update_that_fails_or_is_cancelled_stays_fenced_and_says_why(
    system: System, trainer: Trainer, error: BaseException
) -> None:
    version = f"after-{type(error).__name__}"

    async def story() -> None:
        async with bm.Pool(system.config()) as pool, others(system) as going, pool.session("w2", sender="train") as session:
            before = (await trainer.pool())["status"]["weights"]["published"]
            with pytest.raises(type(error)):
                async with trainer.update(pool, "step-lost"):
                    raise error
            assert (await trainer.notes())[FAILED].startswith(f"step-lost: {type(error).__name__}")
            assert await trainer.sender("train") == "Fenced"
            assert (await trainer.pool())["status"]["weights"]["published"] == before
            with pytest.raises(bm.Fenced):
                await session.generate(**params(4))
            await going.go_on()
            async with trainer.update(pool, version) as again:
                assert FAILED not in await trainer.notes()
                await trainer.push(again)
            assert (await session.generate(**params(4), wait=PATIENCE)).versions.granted == version

    asyncio.run(story())


def test_updates_follow_each_other_and_never_meet(system: System, trainer: Trainer) -> None:
    async def story() -> None:
        async with bm.Pool(system.config()) as pool, pool.session("w3", sender="train") as session:
            for version in ("step-50", "step-51"):
                async with trainer.update(pool, version) as update:
                    with pytest.raises(UpdateError, match="another update is under way"):
                        async with trainer.update(pool, "step-99"):
                            raise AssertionError("two updates at once")
                    await trainer.push(update)
                result = await session.generate(**params(4), wait=PATIENCE)
                assert result.versions == bm.VersionSpan(version, version, False)

    asyncio.run(story())


def test_trainer_without_asyncio_updates(system: System, trainer: Trainer) -> None:
    with bm.SyncPool(system.config()) as pool:
        with pool.weights_update("step-52", ["train"], kube=trainer.kube, fence_timeout=PATIENCE, publish_timeout=PATIENCE) as update:
            asyncio.run(trainer.push(update))
        with pool.session("w4", sender="train") as session:
            assert session.generate(**params(4), wait=PATIENCE).versions.granted == "step-52"


def test_field_of_another_owner_is_a_conflict_before_anything_is_fenced(system: System, trainer: Trainer) -> None:
    def manifest(*senders: dict[str, str]) -> dict[str, Any]:
        return {
            "apiVersion": "inference.berthmaster.io/v1alpha1", "kind": "InferencePool",
            "metadata": {"name": "policy", "namespace": "default"}, "spec": {"senders": list(senders)},
        }

    async def story() -> None:
        async with KubeAPI(trainer.owner) as owner, bm.Pool(system.config()) as pool:
            await owner.apply(POOL, manifest({"name": "train", "access": "Open"}), "somebodys-manifest", force=True)
            with pytest.raises(OwnerConflict) as refused:
                async with trainer.update(pool, "step-60"):
                    raise AssertionError("the manifest's owner would have opened the sender again")
            assert "somebodys-manifest" in str(refused.value) and "access" in refused.value.fields[0]
            assert await trainer.sender("train") == "Open" and UNDER_WAY not in await trainer.notes()
            async with trainer.update(pool, "step-60", force_conflicts=True) as update:
                await trainer.push(update)
            await owner.apply(POOL, manifest(), "somebodys-manifest")
            assert (await trainer.pool())["spec"]["weights"]["version"] == "step-60"

    asyncio.run(story())
