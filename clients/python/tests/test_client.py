"""What no table of scenarios can ask: event loops, threads, processes, types."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from player import Run

import berthmaster as bm
from berthmaster._office import Office

HELD: dict[str, Any] = {"until": "renew*4"}
"""An engine that replies once the lease has been renewed four times."""


def scenario(**parts: Any) -> dict[str, Any]:
    """A scenario of a test's own: one generate, which may end as it does."""
    return {"whole": {"name": "of-its-own", "do": [{"call": "generate", "report": {"result": "Succeeded"}}], **parts}}


def grant(ttl: int = 120) -> list[dict[str, Any]]:
    return [{"engine": "a", "ttlSeconds": ttl}]


@contextmanager
def judged(fakepool: str, asked: dict[str, Any], result: str = "Succeeded") -> Iterator[Run]:
    """A run that is judged at its end: the laws that hold in every scenario."""
    run = Run(fakepool, asked)
    try:
        yield run
    except BaseException:
        run.close()
        raise
    violations = run.judge([{"result": result} for _ in asked["whole"]["do"]])
    assert [v for v in violations if not v.startswith("step ")] == []


SESSION: dict[str, Any] = {"sender": "train", "sender_generation": 3, "epoch": 4, "group": "group-1"}


def test_lease_is_kept_while_the_event_loop_is_blocked(fakepool: str) -> None:
    """The engine replies after four renewals, and the loop is blocked until it has seen them."""
    with judged(fakepool, scenario(grants=grant(ttl=1), engines={"a": {"replies": [HELD]}})) as run:

        async def story() -> bm.Result:
            async with bm.Pool(run.config()) as pool:
                session = pool.session("session-1", **SESSION)
                generating = asyncio.create_task(session.generate([1]))
                await asyncio.to_thread(run.wait, "request")
                run.wait("renew*4")  # blocks this event loop
                return await generating

        assert asyncio.run(story()).output_tokens == 3


def test_cancelled_error_says_how_the_request_ended(fakepool: str) -> None:
    with judged(fakepool, scenario(engines={"a": {"replies": [{"until": "never"}]}}), "Cancelled") as run:

        async def story() -> None:
            async with bm.Pool(run.config()) as pool:
                generating = asyncio.create_task(pool.session("session-1", **SESSION).generate([1]))
                await asyncio.to_thread(run.wait, "request")
                generating.cancel()
                with pytest.raises(asyncio.CancelledError) as cut:
                    await generating
                failure = bm.outcome_of(cut.value)
                assert isinstance(failure, bm.Cancelled) and failure.fate is bm.Fate.PENDING and not failure.may_repeat

        asyncio.run(story())


def test_outcome_is_not_that_of_an_error_handled_before() -> None:
    members = {"backend": {"name": "a", "incarnation": "a/1", "url": "http://a"}, "rid": "r", "token": "t", "ttlSeconds": 1}
    failure = bm.Ambiguous(bm.Lease(Office(bm.PoolConfig("http://x")), "r1", members, 0.0), bm.Fate.DEAD)
    try:
        try:
            raise failure
        except bm.Ambiguous:
            raise asyncio.CancelledError
    except asyncio.CancelledError as err:
        assert err.__context__ is failure and bm.outcome_of(err) is None
    assert bm.outcome_of(failure) is failure
    later = asyncio.CancelledError()
    later.__cause__ = failure
    assert bm.outcome_of(later) is failure


def test_loop_that_ends_in_the_middle_leaves_a_release(fakepool: str) -> None:
    """asyncio.run cancels what still runs; the release happens on the pool's own thread."""
    with judged(fakepool, scenario(engines={"a": {"replies": [{"until": "never"}]}}), "Cancelled") as run:
        pool = bm.Pool(run.config())

        async def story() -> None:
            asyncio.get_running_loop().create_task(pool.session("session-1", **SESSION).generate([1]))
            await asyncio.to_thread(run.wait, "request")

        asyncio.run(story())
        run.wait("release:Cancelled")
        asyncio.run(pool.close())


def test_time_that_is_over_cuts_the_request(fakepool: str) -> None:
    with judged(fakepool, scenario(engines={"a": {"replies": [{"until": "never"}]}}), "Cancelled") as run:
        with bm.SyncPool(run.config()) as pool, pytest.raises(bm.Cancelled) as cut:
            pool.session("session-1", **SESSION).generate([1], timeout=0.3)
        assert isinstance(cut.value.__cause__, TimeoutError)


def test_session_asks_for_the_epoch_and_tells_its_end(fakepool: str) -> None:
    with judged(fakepool, scenario()) as run:

        async def story() -> None:
            async with bm.Pool(run.config(sender_generation=3)) as pool:
                async with pool.session("session-1", group="group-1", sender="train") as session:
                    assert session.epoch == 4
                    result = await session.generate([1, 2, 3], {"max_new_tokens": 3})
                assert session.end_error is None and session.last_backend == bm.Backend("a", "a/1")
                assert result.output_ids == (11, 12, 13) and result.logprobs == (-0.5, -0.25, -0.125)
                assert result.text == "hi" and result.sample.finish_reason == "stop" and result.backend == "a"
                assert result.versions == bm.VersionSpan("v7", "v7", False) and not result.mixed
                assert result.prompt_tokens == 5

        asyncio.run(story())
        run.wait("end")


@pytest.mark.parametrize("error", [ValueError("tool failed"), asyncio.CancelledError()])
def test_session_ends_on_failure_and_cancel(fakepool: str, error: BaseException) -> None:
    with judged(fakepool, scenario()) as run:

        async def story() -> None:
            async with bm.Pool(run.config()) as pool:
                async with pool.session("session-1", **SESSION):
                    raise error

        with pytest.raises(type(error)):
            asyncio.run(story())
        run.wait("end")


def test_one_pool_serves_event_loops_one_after_the_other_and_threads(fakepool: str) -> None:
    with judged(fakepool, scenario()) as run:
        pool = bm.Pool(run.config())
        texts: list[str] = []

        def work() -> None:
            async def turn() -> str:
                return (await pool.session("session-1", **SESSION).generate([1])).text

            texts.extend([asyncio.run(turn()), asyncio.run(turn())])

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        asyncio.run(pool.close())
        assert texts == ["hi"] * 8


def _in_a_child(pool: bm.SyncPool, answer: Any) -> None:
    with pool.session("session-1", **SESSION) as session:
        answer.send(session.generate([1]).text)


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_pool_goes_to_other_processes(fakepool: str, method: str) -> None:
    with judged(fakepool, scenario()) as run:
        with bm.SyncPool(run.config()) as pool:
            assert pool.session("session-1", **SESSION).generate([1]).text == "hi"  # its threads run
            context = multiprocessing.get_context(method)
            ours, theirs = context.Pipe()
            child = context.Process(target=_in_a_child, args=(pool, theirs))  # type: ignore[attr-defined]
            child.start()
            assert ours.poll(60) and ours.recv() == "hi"
            child.join(60)
            assert child.exitcode == 0


def test_blocking_stream_hands_on_events(fakepool: str) -> None:
    events = [{"meta_info": {"completion_tokens": 1}}, {"text": "hi", "meta_info": {"completion_tokens": 2, "weight_version": "v8"}}]
    replies = [{"events": [*events, "[DONE]"]}, {"events": [events[0]], "cut": -5}]
    with judged(fakepool, scenario(engines={"a": {"replies": replies}})) as run, bm.SyncPool(run.config()) as pool:
        session = pool.session("session-1", **SESSION)
        with session.stream([1]) as stream:
            assert list(stream) == events
            assert stream.result.text == "hi" and stream.result.versions.replied == "v8" and stream.result.output_tokens == 2
        with session.stream([1]) as stream:
            assert next(stream) == events[0]
        assert isinstance(stream.stream.error, bm.Cancelled)


def test_stream_that_breaks_raises_from_the_iteration(fakepool: str) -> None:
    replies = [{"events": [{"meta_info": {}}], "then": "close"}]
    with judged(fakepool, scenario(engines={"a": {"replies": replies}}), "Ambiguous") as run, bm.SyncPool(run.config()) as pool:
        with pool.session("session-1", **SESSION).stream([1]) as stream:
            next(stream)
            with pytest.raises(bm.Ambiguous) as broken:
                next(stream)
        assert broken.value.fate is bm.Fate.DEAD and broken.value.may_repeat


def test_fate_that_takes_longer_than_a_call_is_waited_for(fakepool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("berthmaster.lease.MAX_POLL", 0.2)
    hangs: dict[str, Any] = {"release": [{"times": 3, "fault": "hang"}, {"times": -1, "fields": {"fate": "Dead"}}]}
    broken = {"a": {"replies": [{"raw": "", "then": "close"}]}}
    with judged(fakepool, scenario(router=hangs, engines=broken), "Ambiguous") as run:
        with bm.SyncPool(run.config(call_timeout=1.5, retry_for=0.001)) as pool, pytest.raises(bm.Ambiguous) as cut:
            pool.session("session-1", **SESSION).generate([1])
        assert cut.value.fate is bm.Fate.DEAD and cut.value.release_error is None


def test_many_turns_at_once_keep_apart(fakepool: str) -> None:
    with judged(fakepool, scenario(grants=grant(ttl=1), engines={"a": {"replies": [{"times": -1, "delaySeconds": 0.4}]}})) as run:

        async def story() -> list[bm.Result]:
            async with bm.Pool(run.config()) as pool:
                session = pool.session("session-1", **SESSION)
                return await asyncio.gather(*(session.generate([1]) for _ in range(40)))

        assert len({result.lease.rid for result in asyncio.run(story())}) == 40


def test_engine_behind_an_endless_flood_is_cut(fakepool: str) -> None:
    replies = [{"body": {"text": "x" * 5000}}]
    with judged(fakepool, scenario(engines={"a": {"replies": replies}}), "Cancelled") as run:
        with bm.SyncPool(run.config(max_reply_bytes=1000)) as pool, pytest.raises(bm.Cancelled, match="Cancelled"):
            pool.session("session-1", **SESSION).generate([1])


def test_router_that_is_not_there_is_said(tmp_path: Path) -> None:
    with bm.SyncPool(bm.PoolConfig("http://127.0.0.1:9/x", retry_for=0.2)) as pool:
        began = time.monotonic()
        with pytest.raises(bm.Unanswered):
            pool.session("s", sender="train", epoch=1).generate([1])
        assert time.monotonic() - began < 60


def test_token_file_is_read_for_each_call(fakepool: str, tmp_path: Path) -> None:
    with judged(fakepool, scenario()) as run:
        file = tmp_path / "token"
        file.write_text(run.offer["routerToken"] + "\n")
        config = bm.PoolConfig(run.offer["baseURL"], token_file=str(file), api_key=run.offer["engineKey"])
        with bm.SyncPool(config) as pool:
            session = pool.session("session-1", **SESSION)
            assert session.generate([1]).text == "hi"
            file.unlink()
            with pytest.raises(OSError):
                session.generate([1])


def test_what_cannot_be_encoded_costs_no_lease() -> None:
    with bm.SyncPool(bm.PoolConfig("http://127.0.0.1:9/x", retry_for=600)) as pool, pytest.raises(TypeError):
        pool.session("s", sender="train", epoch=1).generate([1], {"stop": object()})


@pytest.mark.parametrize(("asked", "executions"), [
    ({"input_ids": [1, 2]}, 1), ({"input_ids": [[1], [2], [3]]}, 3), ({"text": "x"}, 1), ({"text": ["x", "y"]}, 2),
    ({"input_ids": [[1], [2]], "sampling_params": {"n": 4}}, 8), ({"route": "/v1/completions", "n": 3}, 3),
    ({"input_ids": [1], "executions": 5}, 5),
])
def test_executions_are_counted(asked: dict[str, Any], executions: int) -> None:
    from berthmaster._attempt import turn

    assert turn(**asked).executions == executions


@pytest.mark.parametrize(("field", "options"), [
    ("base_url", {"base_url": "grpc://x"}), ("base_url", {"base_url": "http://u:p@x"}), ("base_url", {"base_url": "http://x?y"}),
    ("attempts", {"attempts": 0}), ("retry_for", {"retry_for": -1}), ("epoch", {"epoch": -1}),
    ("token", {"token": "a", "token_file": "b"}), ("api_key", {"api_key": "a", "api_key_file": "b"}),
])
def test_configuration_is_refused_by_field(field: str, options: dict[str, Any]) -> None:
    with pytest.raises(bm.ConfigError) as refused:
        bm.PoolConfig(**{"base_url": "http://x", **options})
    assert refused.value.field == field


def test_configuration_is_pickled_and_shows_no_secret() -> None:
    config = bm.PoolConfig.of("http://router/", "rl", "policy", token="s3cret", api_key="s3cret")
    assert config.base_url == "http://router/v1alpha1/namespaces/rl/inferencepools/policy"
    assert pickle.loads(pickle.dumps(config)) == config and "s3cret" not in repr(config)
    assert pickle.loads(pickle.dumps(bm.Pool(config))).config == config


def test_every_reason_has_its_class() -> None:
    from berthmaster.errors import problem

    document = Path(__file__).resolve().parents[3] / "client" / "errors.go"
    reasons = [line.split('"')[1] for line in document.read_text().splitlines() if line.startswith("\tErr") and "errors.New(" in line]
    assert len(reasons) > 15
    outcomes = {kind.outcome.value for kind in bm.OutcomeError.__subclasses__()}
    for reason in reasons:
        if reason not in outcomes:
            assert type(problem(409, {"reason": reason})) is not bm.Problem, reason
    assert type(problem(500, {"reason": "Internal"})) is bm.Problem


def test_lease_use_needs_nothing_of_kubernetes() -> None:
    code = "import sys, berthmaster; print([m for m in sys.modules if 'kube' in m or m == 'yaml' or m.endswith('weights')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_thread_of_a_pool_that_nobody_uses_ends(fakepool: str) -> None:
    with judged(fakepool, scenario()) as run:
        session = bm.Pool(run.config()).session("session-1", **SESSION)
        assert asyncio.run(session.generate([1])).text == "hi"  # the session keeps what it needs
        (thread,) = [t for t in threading.enumerate() if t.name == "berthmaster"]
        del session
        gc.collect()
        thread.join(60)
        assert not thread.is_alive()


def test_process_that_ends_has_released(fakepool: str) -> None:
    """A script that forgets to close its pool ends, and its lease is released."""
    with judged(fakepool, scenario(engines={"a": {"replies": [{"until": "never"}]}}), "Cancelled") as run:
        code = (
            "import asyncio, httpx, pickle, sys, berthmaster as bm\n"
            "config, sent = pickle.load(sys.stdin.buffer)\n"
            "pool = bm.Pool(config)\n"
            "async def main():\n"
            "    s = pool.session('session-1', group='group-1', sender='train', sender_generation=3, epoch=4)\n"
            "    task = asyncio.ensure_future(s.generate([1]))\n"
            "    await asyncio.to_thread(httpx.get, sent, timeout=60, trust_env=False)\n"
            "asyncio.run(main())\n"
        )
        told = pickle.dumps((run.config(), f"{fakepool}/runs/{run.offer['run']}/await?word=request"))
        done = subprocess.run([sys.executable, "-c", code], input=told, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
