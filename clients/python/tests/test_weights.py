"""Updates of weights, against an API server that applies as the real one does."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest
from apiserver import APIServer, obey

import berthmaster as bm
from berthmaster.config import PoolConfig
from berthmaster.errors import ConfigError
from berthmaster.kube import KubeConfig, KubeError
from berthmaster.weights import FAILED, UNDER_WAY, Bounds, OwnerConflict, PoolName, UpdateError, WeightsUpdate, weights_update

POOL = PoolName("rl", "policy")
FIELDS = {"senders", "weights", "epoch"}


@pytest.fixture
def server() -> Iterator[APIServer]:
    with APIServer(FIELDS) as server:
        yield server


async def live() -> dict[str, Any]:
    return {"backends": [
        {"name": "a", "incarnation": "a/1", "url": "http://a:1", "retired": False},
        {"name": "old", "incarnation": "old/1", "url": "http://old:1", "retired": True},
    ]}


def update(
    server: APIServer,
    version: str = "step-42",
    senders: tuple[str, ...] = ("train",),
    within: float | None = 60.0,
    take_over: bool = False,
    epoch: int = 0,
) -> AbstractAsyncContextManager[WeightsUpdate]:
    kube = KubeConfig(server.url, token=server.token)
    return weights_update(kube, POOL, version, senders, Bounds(within, within), take_over, live, epoch)


def test_update_fences_then_publishes_then_opens(server: APIServer) -> None:
    async def story() -> None:
        async with update(server) as under_way:
            assert [engine.url for engine in under_way.engines] == ["http://a:1"]
            assert server.sender("train")["access"] == "Fenced"
            assert server.sender("eval").get("access") is None
            assert "weights" not in server.object["spec"]
            assert server.annotations()[UNDER_WAY].startswith("step-42 ")
        assert server.sender("train")["access"] == "Open"
        assert server.object["spec"]["weights"] == {"version": "step-42", "epoch": 1, "source": "External"}
        assert server.annotations() == {}

    asyncio.run(story())
    accesses = [write["spec"]["senders"][0]["access"] for write in server.writes]
    assert accesses == ["Fenced", "Fenced", "Open"]


def test_update_waits_until_the_status_is_of_its_own_fence(server: APIServer) -> None:
    fencing = asyncio.Event()

    async def story() -> None:
        loop = asyncio.get_running_loop()

        def hesitate(thing: dict[str, Any]) -> None:
            # The status claims a fence, of a generation before; the real one comes with the event.
            stale = thing["metadata"]["generation"] - 1
            thing["status"] = {"observedGeneration": stale, "senders": [{"name": "train", "access": "Fenced"}]}
            loop.call_soon_threadsafe(fencing.set)

        server.controller = hesitate
        entered = asyncio.Event()

        async def enter() -> None:
            async with update(server):
                entered.set()

        task = asyncio.create_task(enter())
        await fencing.wait()
        looks = server.reads + 3
        with anyio.fail_after(60):
            while server.reads < looks:
                await asyncio.sleep(0.01)
        assert not entered.is_set()
        server.controller = obey
        with server.lock:
            obey(server.object)
        await asyncio.wait_for(task, 60)
        assert entered.is_set()

    asyncio.run(story())


@pytest.mark.parametrize("error", [RuntimeError("push failed\n twice"), asyncio.CancelledError()])
def test_exception_leaves_the_fence_with_its_reason(server: APIServer, error: BaseException) -> None:
    async def story() -> None:
        async with update(server):
            raise error

    with pytest.raises(type(error)):
        asyncio.run(story())
    assert server.sender("train")["access"] == "Fenced"
    assert "weights" not in server.object["spec"]
    assert server.annotations()[FAILED].startswith(f"step-42: {type(error).__name__}")
    assert "\n" not in server.annotations()[FAILED]


def test_update_that_failed_can_be_made_again(server: APIServer) -> None:
    async def fail() -> None:
        async with update(server):
            raise RuntimeError("push failed")

    async def succeed() -> None:
        async with update(server, "step-43"):
            assert FAILED not in server.annotations()

    with pytest.raises(RuntimeError):
        asyncio.run(fail())
    asyncio.run(succeed())
    assert server.sender("train")["access"] == "Open" and server.annotations() == {}


def test_version_and_senders_of_earlier_updates_stay(server: APIServer) -> None:
    async def story() -> None:
        async with update(server, "step-1", ("train", "eval")):
            pass
        async with update(server, "step-2", ("eval",)):
            assert server.object["spec"]["weights"]["version"] == "step-1"
            assert server.sender("train")["access"] == "Open"
            raise RuntimeError

    with pytest.raises(RuntimeError):
        asyncio.run(story())
    assert server.object["spec"]["weights"]["version"] == "step-1"
    assert server.sender("train")["access"] == "Open" and server.sender("eval")["access"] == "Fenced"


def test_two_updates_at_once_are_refused(server: APIServer) -> None:
    async def story() -> None:
        async with update(server, "step-1"):
            with pytest.raises(UpdateError, match="another update is under way"):
                async with update(server, "step-2"):
                    pytest.fail("two updates at once")
            async with update(server, "step-2", take_over=True):
                pass

    asyncio.run(story())


def test_update_begun_by_a_process_that_ended_goes_on(server: APIServer) -> None:
    server.object["metadata"]["annotations"][UNDER_WAY] = "step-42 of-before"

    async def story() -> None:
        async with update(server):
            pass

    asyncio.run(story())
    assert server.annotations() == {}


def test_pool_that_changes_meanwhile_is_looked_at_again(server: APIServer) -> None:
    def somebody_writes() -> None:
        server.before_write = lambda: None
        with server.lock:
            server.object["metadata"]["resourceVersion"] = "77"

    server.before_write = somebody_writes

    async def story() -> None:
        async with update(server):
            assert server.sender("train")["access"] == "Fenced"

    asyncio.run(story())


def test_resource_without_weights_is_refused_before_the_fence() -> None:
    async def story(server: APIServer) -> None:
        async with update(server):
            pytest.fail("nothing can be published")

    with APIServer(FIELDS - {"weights"}) as server:
        with pytest.raises(UpdateError, match="cannot publish weights"):
            asyncio.run(story(server))
        assert server.writes == []


def test_trainer_of_an_older_epoch_is_refused_before_the_fence(server: APIServer) -> None:
    server.object["spec"]["epoch"] = 2

    async def story() -> None:
        with pytest.raises(UpdateError, match="epoch"):
            async with update(server, epoch=1):
                raise AssertionError("an update of epoch 1 began in epoch 2")
        assert server.writes == []
        async with update(server, epoch=2):
            pass
        async with update(server, "step-43"):
            pass
        assert server.object["spec"]["weights"]["epoch"] == 2

    asyncio.run(story())


def test_unknown_sender_is_refused(server: APIServer) -> None:
    async def story() -> None:
        async with update(server, senders=("train", "nobody")):
            pytest.fail("there is no such sender")

    with pytest.raises(UpdateError, match="nobody"):
        asyncio.run(story())
    assert server.writes == []


def test_fence_that_does_not_come_in_time_stays_asked_for(server: APIServer) -> None:
    def never(thing: dict[str, Any]) -> None:
        obey(thing)
        thing["status"]["senders"] = [{"name": "train", "access": "Fencing"}]

    server.controller = never

    async def story() -> None:
        async with update(server, within=0.1):
            pytest.fail("it is not fenced")

    with pytest.raises(UpdateError, match="fenced"):
        asyncio.run(story())
    assert server.sender("train")["access"] == "Fenced" and "UpdateError" in server.annotations()[FAILED]


def test_credentials_that_are_not_good_are_said(server: APIServer) -> None:
    server.token = "another"
    kube = KubeConfig(server.url, token="kube-token")

    async def story() -> None:
        async with weights_update(kube, POOL, "v", ("train",), Bounds(1, 1), False, live):
            pytest.fail("who is this?")

    with pytest.raises(KubeError) as refused:
        asyncio.run(story())
    assert refused.value.status == 401


@pytest.mark.parametrize("error", [None, RuntimeError("push failed"), KeyboardInterrupt()])
def test_update_without_asyncio_publishes_or_stays_fenced(server: APIServer, error: BaseException | None) -> None:
    kube = KubeConfig(server.url, token=server.token)
    with bm.SyncPool(PoolConfig.of("http://router", "rl", "policy", epoch=1)) as pool:
        pool.pool.live = live  # type: ignore[method-assign]
        try:
            with pool.weights_update("step-42", kube=kube, fence_timeout=60.0) as under_way:
                assert [engine.url for engine in under_way.engines] == ["http://a:1"]
                assert server.sender("train")["access"] == "Fenced"
                if error is not None:
                    raise error
        except (RuntimeError, KeyboardInterrupt) as err:
            assert err is error
    assert server.sender("train")["access"] == ("Open" if error is None else "Fenced")
    assert (FAILED in server.annotations()) == (error is not None)


def test_field_of_another_owner_is_named_with_its_owner(server: APIServer) -> None:
    server.owner = "somebodys-manifest"

    async def story(**options: Any) -> None:
        kube = KubeConfig(server.url, token=server.token)
        async with weights_update(kube, POOL, "v", ("train",), Bounds(60, 60), False, live, **options):
            assert server.sender("train")["access"] == "Fenced"

    with pytest.raises(OwnerConflict, match="somebodys-manifest") as refused:
        asyncio.run(story())
    assert server.writes == [] and "access" in refused.value.fields[0]
    asyncio.run(story(force=True))
    assert server.sender("train")["access"] == "Open"


CONFIG: dict[str, Any] = {
    "current-context": "here",
    "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}, {"name": "there", "context": {"cluster": "c", "user": "x"}}],
    "clusters": [{"name": "c", "cluster": {"server": "https://api:6443/", "certificate-authority": "ca.pem"}}],
    "users": [{"name": "u", "user": {"token": "t", "client-certificate-data": "UEVN"}}, {"name": "x", "user": {"exec": {}}}],
}


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_kubeconfig_is_read(tmp_path: Path, form: str) -> None:
    import yaml

    (tmp_path / "ca.pem").write_text("authority")
    file = tmp_path / "config"
    file.write_text(json.dumps(CONFIG) if form == "json" else yaml.safe_dump(CONFIG))
    got = KubeConfig.from_file(str(file))
    assert got == KubeConfig("https://api:6443", token="t", ca="authority", client_cert="PEM")
    assert pickle.loads(pickle.dumps(got)) == got
    assert "'t'" not in repr(got) and "authority" not in repr(got)
    with pytest.raises(KubeError, match="program to log in"):
        KubeConfig.from_file(str(file), "there")
    with pytest.raises(KubeError, match="nowhere"):
        KubeConfig.from_file(str(file), "nowhere")


def test_pool_is_configured_from_a_kubeconfig(tmp_path: Path) -> None:
    file = tmp_path / "config"
    chosen = {**CONFIG, "clusters": [{"name": "c", "cluster": {"server": "https://api"}}]}
    chosen["contexts"] = [
        {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "rl"}},
        {"name": "bare", "context": {"cluster": "c", "user": "y"}},
    ]
    chosen["users"] = [CONFIG["users"][0], {"name": "y", "user": {}}]
    file.write_text(json.dumps(chosen))
    got = PoolConfig.from_kubeconfig("http://router", "policy", path=str(file), attempts=2)
    assert got.router_headers() == {"Authorization": "Bearer t"} and got.attempts == 2
    assert got.base_url == "http://router/v1alpha1/namespaces/rl/inferencepools/policy"
    with pytest.raises(ConfigError, match="token"):
        PoolConfig.from_kubeconfig("http://router", "policy", path=str(file), context="bare")


def test_service_account_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    with pytest.raises(KubeError):
        KubeConfig.in_cluster(str(tmp_path))
    (tmp_path / "ca.crt").write_text("authority")
    (tmp_path / "token").write_text("one\n")
    got = KubeConfig.in_cluster(str(tmp_path))
    assert got.server == "https://[fd00::1]:443" and got.headers() == {"Authorization": "Bearer one"}
    (tmp_path / "token").write_text("two\n")
    assert got.headers() == {"Authorization": "Bearer two"}
    assert copy.copy(got) == got
