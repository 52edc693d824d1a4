"""Makes this client do the steps of a shared scenario, and reports of each."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import httpx

import berthmaster as bm

PATIENCE = 200.0
"""Longer than whoever plays the pool waits for anything."""
SESSION = {"sender": "train", "sender_generation": 3, "epoch": 4, "group": "group-1"}


class Run:
    """One run of a scenario, as the pool that plays it offers it."""

    def __init__(self, where: str, asked: dict[str, Any]) -> None:
        self._http = httpx.Client(base_url=where, timeout=PATIENCE, trust_env=False)
        answer = self._http.post("/runs", json=asked)
        assert answer.status_code == 201, answer.text
        self.offer: dict[str, str] = answer.json()

    def wait(self, word: str) -> None:
        answer = self._http.get(f"/runs/{self.offer['run']}/await", params={"word": word})
        assert answer.status_code == 200, answer.text

    def act(self, step: dict[str, Any]) -> None:
        answer = self._http.post(f"/runs/{self.offer['run']}/act", json=step)
        assert answer.status_code == 200, answer.text

    def judge(self, reports: list[dict[str, Any]]) -> list[str]:
        answer = self._http.post(f"/runs/{self.offer['run']}/verdict", json={"reports": reports})
        assert answer.status_code == 200, answer.text
        self.close()
        return list(answer.json()["violations"] or [])

    def close(self) -> None:
        self._http.close()

    def config(self, **options: Any) -> bm.PoolConfig:
        return bm.PoolConfig(
            base_url=self.offer["baseURL"], token=self.offer["routerToken"], api_key=self.offer["engineKey"],
            ca_file=self.offer.get("authorities", ""), engine_ca_file=self.offer.get("authorities", ""),
            **{"attempts": 1, **options},
        )


def options(settings: dict[str, Any]) -> dict[str, Any]:
    """The client's configuration as a scenario wants it."""
    names = {
        "attempts": "attempts", "retryForSeconds": "retry_for", "callTimeoutSeconds": "call_timeout",
        "maxReplyBytes": "max_reply_bytes",
    }
    return {ours: settings[theirs] for theirs, ours in names.items() if theirs in settings}


def last_backend(settings: dict[str, Any]) -> bm.Backend | None:
    name = settings.get("lastBackend")
    return bm.Backend(name, f"{name}/1") if name else None


class Player:
    """The steps, with the client for asyncio."""

    def __init__(self, run: Run, pool: bm.Pool, settings: dict[str, Any]) -> None:
        self._run = run
        self._pool = pool
        self._settings = settings
        self._sessions: dict[str, bm.Session] = {}
        self._kept: dict[str, bm.Lease] = {}
        self._under: dict[str, asyncio.Task[dict[str, Any]]] = {}
        """The steps that go on, by name."""
        self._last: bm.Lease | None = None

    async def play(self, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Does the steps, and reports of each."""
        return [await self.do({"turn": str(number), **step}) for number, step in enumerate(steps)]

    async def do(self, step: dict[str, Any]) -> dict[str, Any]:
        """Does one step, or lets it begin, and reports of it."""
        if step["call"] == "owner":
            await asyncio.to_thread(self._run.act, step)
        elif step["call"] == "await":
            await asyncio.to_thread(self._run.wait, step["word"])
        elif step["call"] == "join":
            return await self._under.pop(step["of"])
        elif "as" in step:
            self._session(step)
            self._under[step["as"]] = asyncio.create_task(self._call(step))
        else:
            return await self._call(step)
        return {"result": "Done"}

    async def _call(self, step: dict[str, Any]) -> dict[str, Any]:
        call = asyncio.ensure_future(getattr(self, "_" + step["call"])(step))
        if "cancelOn" in step:
            await asyncio.to_thread(self._run.wait, step["cancelOn"])
            call.cancel()
        try:
            report: dict[str, Any] = await call
        except (Exception, asyncio.CancelledError) as err:
            report = failure(err)
            if (failed := bm.outcome_of(err)) is not None:
                self._last = failed.lease
        return {**report, "at": datetime.datetime.now(datetime.timezone.utc).isoformat()}

    def _session(self, step: dict[str, Any]) -> bm.Session:
        name = session_id(step)
        if name not in self._sessions:
            self._sessions[name] = self._pool.session(name, last_backend=last_backend(self._settings), **SESSION)  # type: ignore[arg-type]
        return self._sessions[name]

    def _turn(self, step: dict[str, Any]) -> dict[str, Any]:
        return {
            "sampling_params": {"max_new_tokens": step.get("tokens", 3), "ignore_eos": True},
            "session_id": session_id(step), "headers": {"X-Turn": step["turn"]},
            "traceparent": self._settings.get("traceparent", ""), "request_id": step.get("requestID", ""),
            "executions": step.get("executions", 0), "wait": step.get("waitSeconds", 0),
        }

    async def _generate(self, step: dict[str, Any]) -> dict[str, Any]:
        return success(await self._session(step).generate([1, 2, 3], **self._turn(step)))

    async def _stream(self, step: dict[str, Any]) -> dict[str, Any]:
        seen = 0
        try:
            async with self._session(step).stream([1, 2, 3], **self._turn(step)) as events:
                async for _ in events:
                    seen += 1
                    if seen == step.get("stopAfterEvents"):
                        break
            if events.error is not None:
                raise events.error
            return {**success(events.result), "events": seen}
        except (Exception, asyncio.CancelledError) as err:
            return {**failure(err), "events": seen}

    async def _acquire(self, step: dict[str, Any]) -> dict[str, Any]:
        token = step.get("token", "")
        lease = await self._pool.acquire(bm.LeaseRequest(
            request_id=step["requestID"], session_id=session_id(step), wait=step.get("waitSeconds", 0),
            token=self._kept[step["requestID"]].token if token == "kept" else token,
            **SESSION,  # type: ignore[arg-type]
        ))
        if step["call"] == "hold":
            self._kept[step["requestID"]] = lease
        else:
            await lease.release(bm.Report(bm.Outcome.NOT_SENT))
        return {"result": "Done", "backend": lease.backend.name, "rid": lease.rid}

    _hold = _acquire

    async def _awaitFate(self, _: dict[str, Any]) -> dict[str, Any]:
        assert self._last is not None
        return {"result": "Done", "fate": (await self._last.await_fate()).fate.value}

    async def _endSession(self, step: dict[str, Any]) -> dict[str, Any]:
        await self._session(step).end()
        return {"result": "Done"}

    async def _pause(self, step: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(step["seconds"])
        return {"result": "Done"}


def session_id(step: dict[str, Any]) -> str:
    return str(step.get("session", "session-1"))


def success(result: bm.Result) -> dict[str, Any]:
    return {
        "result": "Succeeded", "backend": result.backend, "outputTokens": result.output_tokens,
        "weightVersion": result.versions.replied, "mixed": result.mixed, "released": result.release_error is None,
        "rid": result.lease.rid,
    }


def failure(err: BaseException) -> dict[str, Any]:
    """What an exception says."""
    report: dict[str, Any] = {"result": "Error", "message": f"{type(err).__name__}: {err}"}
    if isinstance(err, asyncio.CancelledError):
        report["result"] = "Cancelled"
    if isinstance(err, bm.Unanswered):
        report["result"] = "Untrusted" if isinstance(err, bm.Untrusted) else "Unanswered"
    causes = []
    cause: BaseException | None = err
    while cause is not None:
        causes.append(cause)
        cause = cause.__cause__
    for problem in (c for c in causes if isinstance(c, bm.Problem)):
        report.update(result="Refused", reason=problem.reason, outcome=problem.outcome, fate=problem.fate.value, epoch=problem.epoch)
        break
    if (failed := bm.outcome_of(err)) is not None:
        report.update(
            result=failed.outcome.value, fate=failed.fate.value, status=failed.status, mayRepeat=failed.may_repeat,
            released=failed.release_error is None, backend=failed.lease.backend.name, rid=failed.lease.rid,
        )
        if isinstance(failed.release_error, bm.Problem):
            report.setdefault("reason", failed.release_error.reason)
    return report
