"""One request under one lease, from the lease to its release."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Union

from . import _trace
from ._calls import Lost
from ._engine import Each, Post
from ._keeper import Keeper
from ._loop import Handle
from ._office import Office
from ._verdict import Verdict
from .errors import BerthmasterError, OutcomeError, Problem, outcome_error
from .lease import Lease
from .result import Result
from .wire import Ending, Fate, Outcome, Report

Prompt = Union[Sequence[int], Sequence[Sequence[int]]]
"""The tokens of a prompt, or of several."""


@dataclass(frozen=True)
class Turn:
    """What is to be generated."""

    body: dict[str, Any]
    executions: int
    wait: float
    """How many seconds to wait for a lease that cannot be given yet."""
    timeout: float | None
    """After how many seconds a request is cut; None: never."""
    request_id: str
    """Empty: made up, anew for each attempt."""
    route: str
    headers: dict[str, str] = field(default_factory=dict)
    traceparent: str = ""
    """The caller's W3C trace context; empty: it has none."""


def turn(
    input_ids: Prompt | None = None,
    sampling_params: Mapping[str, Any] | None = None,
    *,
    text: str | Sequence[str] | None = None,
    return_logprob: bool = True,
    wait: float = 0.0,
    timeout: float | None = None,
    executions: int = 0,
    request_id: str = "",
    route: str = "/generate",
    headers: Mapping[str, str] | None = None,
    traceparent: str = "",
    **body: Any,
) -> Turn:
    """Makes a turn of what callers say."""
    members: dict[str, Any] = dict(body)
    if input_ids is not None:
        members["input_ids"] = input_ids
    if text is not None:
        members["text"] = text
    if sampling_params is not None:
        members["sampling_params"] = dict(sampling_params)
    if return_logprob and route == "/generate":
        members["return_logprob"] = True
    members.pop("rid", None)  # the lease decides it
    json.dumps(members)  # what cannot be encoded costs no lease
    count = executions or _prompts(input_ids, text) * int((sampling_params or {}).get("n", body.get("n", 1)))
    trace = _trace.of(traceparent, headers or {})
    return Turn(members, count, wait, timeout, request_id, route, dict(headers or {}), trace)


def _prompts(input_ids: Prompt | None, text: str | Sequence[str] | None) -> int:
    """How many prompts there are: a list of lists, or of strings, is so many."""
    if text is not None and not isinstance(text, str):
        return max(len(text), 1)
    if input_ids and not isinstance(input_ids[0], int):
        return len(input_ids)
    return 1


class Attempt:
    """Posts a turn under a lease, keeps the lease meanwhile, and releases it in every case."""

    def __init__(self, office: Office, lease: Lease, turn: Turn, each: Each | None) -> None:
        self._office = office
        self._lease = lease
        self._turn = turn
        self._post = Post(
            office.config, lambda: office.engine_trust(lease.backend.url), lease, turn.route, turn.body, turn.headers,
            wrote=lambda: self._keeper.tell_written(), each=each,
        )
        self._loop = asyncio.get_running_loop()
        self._cut: asyncio.Future[Problem] = self._loop.create_future()
        self._keeper = Keeper(office.thread, lease, self._cut_soon)

    def _cut_soon(self, why: Problem) -> None:
        def cut() -> None:
            if not self._cut.done():
                self._cut.set_result(why)

        try:
            self._loop.call_soon_threadsafe(cut)
        except RuntimeError:
            return  # the caller's loop has ended, and the request with it

    async def run(self) -> Result:
        """It raises an OutcomeError unless the request succeeded. If it is cancelled, the
        CancelledError has the OutcomeError as its cause; see outcome_of."""
        gone: asyncio.CancelledError | None = None
        try:
            verdict = await self._posted()
        except asyncio.CancelledError as err:
            gone = err
            verdict = Verdict(Outcome.CANCELLED if self._post.begun else Outcome.NOT_SENT)
        handle = self._office.thread.start(self._conclude(verdict))
        if gone is not None:
            ending, release_error = await self._linger(handle)
            raise gone from self._failure(verdict, ending, release_error)
        try:
            ending, release_error = await handle.wait()
        except asyncio.CancelledError:
            handle.cancel(after=self._office.config.release_grace)
            raise
        if verdict.outcome is not Outcome.SUCCEEDED:
            raise self._failure(verdict, ending, release_error) from verdict.error
        return Result.read(verdict, self._lease, release_error)

    async def _posted(self) -> Verdict:
        """Posts, until there is a verdict, the time is over or the lease's right has ended."""
        sending = asyncio.ensure_future(self._post.send())
        try:
            waited: set[asyncio.Future[Any]] = {sending, self._cut}
            await asyncio.wait(waited, timeout=self._turn.timeout, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                return sending.result()
            why: BaseException = TimeoutError("the time for the request is over")
            if self._cut.done():
                why = self._cut.result()
        finally:
            await _end(sending)
        return Verdict(Outcome.CANCELLED if self._post.begun else Outcome.NOT_SENT, error=why)

    async def _conclude(self, verdict: Verdict) -> tuple[Ending, BerthmasterError | None]:
        """Ends the keeping and releases, on the pool's own loop."""
        report = Report(verdict.outcome, verdict.output_tokens, verdict.prompt_tokens, verdict.weight_version)
        try:
            await self._keeper.end()
        finally:
            try:
                return await self._lease.releasing(report), None
            except (BerthmasterError, OSError) as err:
                open_end = verdict.outcome in (Outcome.AMBIGUOUS, Outcome.CANCELLED)
                fate = Fate.PENDING if open_end else Fate.NONE
                why = err if isinstance(err, BerthmasterError) else Lost(str(err))
                return Ending(verdict.outcome, fate, self._lease.mixed), why

    async def _linger(self, handle: Handle[tuple[Ending, BerthmasterError | None]]) -> tuple[Ending, BerthmasterError | None]:
        """Waits for a release although the caller has gone, for a while: an execution that nobody
        reports stays counted."""
        grace = self._office.config.release_grace
        handle.cancel(after=grace)
        try:
            return await handle.wait()
        except asyncio.CancelledError:
            return Ending(Outcome.CANCELLED, Fate.PENDING), Lost("the release was not answered in time")

    def _failure(self, verdict: Verdict, ending: Ending, release_error: BerthmasterError | None) -> OutcomeError:
        failure = outcome_error(verdict.outcome)(
            self._lease, ending.fate, status=verdict.status, message=verdict.message, release_error=release_error
        )
        failure.__cause__ = verdict.error
        return failure


async def _end(task: asyncio.Future[Verdict]) -> None:
    """Cancels a task and waits until it has ended, so that its connection is closed before anybody is
    told."""
    if task.done():
        return
    task.cancel()
    await asyncio.wait({task})
