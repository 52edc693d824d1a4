"""Makes this client do the steps of a shared scenario, and reports of each."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx

import berthmaster as bm

SESSION = {"sender": "train", "sender_generation": 3, "epoch": 4, "group": "group-1"}


class Run:
    """One run of a scenario, as the pool that plays it offers it."""

    def __init__(self, where: str, asked: dict[str, Any]) -> None:
        self._http = httpx.Client(base_url=where, timeout=90, trust_env=False)
        answer = self._http.post("/runs", json=asked)
        assert answer.status_code == 201, answer.text
        self.offer: dict[str, str] = answer.json()

    def wait(self, word: str) -> None:
        answer = self._http.get(f"/runs/{self.offer['run']}/await", params={"word": word})
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
        self._session = pool.session("session-1", last_backend=last_backend(settings), **SESSION)  # type: ignore[arg-type]

    async def do(self, step: dict[str, Any]) -> dict[str, Any]:
        call = asyncio.ensure_future(getattr(self, "_" + step["call"])(step))
        if "cancelOn" in step:
            await asyncio.to_thread(self._run.wait, step["cancelOn"])
            call.cancel()
        try:
            report: dict[str, Any] = await call
        except (Exception, asyncio.CancelledError) as err:
            report = failure(err)
        return report

    async def _generate(self, step: dict[str, Any]) -> dict[str, Any]:
        return success(await self._session.generate([1, 2, 3], **turn(step)))

    async def _stream(self, step: dict[str, Any]) -> dict[str, Any]:
        seen = 0
        try:
            async with self._session.stream([1, 2, 3], **turn(step)) as events:
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
        lease = await self._pool.acquire(bm.LeaseRequest(
            request_id=step["requestID"], session_id="session-1", token=step.get("token", ""), wait=step.get("waitSeconds", 0),
            **SESSION,  # type: ignore[arg-type]
        ))
        await lease.release(bm.Report(bm.Outcome.NOT_SENT))
        return {"result": "Done", "backend": lease.backend.name}

    async def _awaitFate(self, _: dict[str, Any]) -> dict[str, Any]:
        lease = self._session.last_lease
        assert lease is not None
        return {"result": "Done", "fate": (await lease.await_fate()).fate.value}

    async def _endSession(self, _: dict[str, Any]) -> dict[str, Any]:
        await self._session.end()
        return {"result": "Done"}

    async def _pause(self, step: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(step["seconds"])
        return {"result": "Done"}


def turn(step: dict[str, Any]) -> dict[str, Any]:
    return {
        "request_id": step.get("requestID", ""), "executions": step.get("executions", 0), "wait": step.get("waitSeconds", 0),
    }


def success(result: bm.Result) -> dict[str, Any]:
    return {
        "result": "Succeeded", "backend": result.backend, "outputTokens": result.output_tokens,
        "weightVersion": result.versions.replied, "mixed": result.mixed, "released": result.release_error is None,
    }


def failure(err: BaseException) -> dict[str, Any]:
    """What an exception says."""
    report: dict[str, Any] = {"result": "Error", "message": f"{type(err).__name__}: {err}"}
    if isinstance(err, asyncio.CancelledError):
        report["result"] = "Cancelled"
    if isinstance(err, bm.Unanswered):
        report["result"] = "Unanswered"
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
            released=failed.release_error is None,
        )
        if isinstance(failed.release_error, bm.Problem):
            report.setdefault("reason", failed.release_error.reason)
    return report
