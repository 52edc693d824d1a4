"""Sessions: trajectories whose requests go to the same engine as long as the pool can keep it there."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlencode

from ._attempt import Attempt, Prompt, Turn, turn
from ._calls import FIRST_WAIT, LAST_WAIT, Lost, rest
from ._engine import Each
from ._office import Office
from .errors import BerthmasterError, NotSent, StaleEpoch
from .lease import Lease, acquire
from .result import Result
from .stream import Stream
from .wire import Backend, LeaseRequest


class Session:
    """One trajectory. Parallel branches may share it; they share its engine then. Leaving it as a
    context manager tells the router that it is over."""

    def __init__(
        self,
        office: Office,
        session_id: str,
        *,
        sender: str,
        group: str = "",
        epoch: int = 0,
        sender_generation: int = 0,
        last_backend: Backend | None = None,
    ) -> None:
        self.id = session_id
        self.sender = sender
        self.group = group
        self.epoch = epoch
        """The pool's epoch in which it began; 0 until it has asked."""
        self.sender_generation = sender_generation
        self._office = office
        self._lock = threading.Lock()
        self._last_backend = last_backend
        self._last_lease: Lease | None = None
        self.end_error: BerthmasterError | None = None
        """Why the router could not be told of the end, in which case the session ends by being idle."""

    @property
    def last_backend(self) -> Backend | None:
        """Where the latest lease was, for whoever takes the session up again."""
        with self._lock:
            return self._last_backend

    @property
    def last_lease(self) -> Lease | None:
        """The latest lease; None before the first."""
        with self._lock:
            return self._last_lease

    async def __aenter__(self) -> Session:
        await self._resolve()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.end()
        except (BerthmasterError, OSError) as err:
            self.end_error = err if isinstance(err, BerthmasterError) else Lost(str(err))

    async def _resolve(self) -> None:
        """Asks for the pool's epoch, once: a session stays in the epoch in which it began, so that
        raising the epoch ends it."""
        if self.epoch == 0:
            self.epoch = int((await self._office.thread.run(self._office.router.repeat("GET", ""))).get("epoch", 0))

    async def end(self) -> None:
        """Tells the router that the trajectory is over. It is idempotent, and goes on for a while if
        its caller leaves."""
        path = f"/sessions/{quote(self.id, safe='')}?{urlencode({'sender': self.sender})}"
        handle = self._office.thread.start(self._office.router.repeat("DELETE", path))
        try:
            await handle.wait()
        except asyncio.CancelledError:
            handle.cancel(after=self._office.config.release_grace)
            raise

    async def generate(
        self,
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
    ) -> Result:
        """Acquires a lease, posts the request to its engine, keeps the lease, and releases it. Other
        keyword arguments become members of the engine's request. It makes another attempt, under a new
        id, only if nothing of the request was written.

        ``wait`` is how many seconds to wait for a lease that cannot be given yet, ``timeout`` after how
        many a request is cut. ``executions`` is counted from the prompts and ``n`` if it is 0.
        ``traceparent`` is the caller's W3C trace context, which router and engine are told; empty: the one in
        ``headers``, or else that of the caller's OpenTelemetry span.

        It raises an OutcomeError once a lease had been granted, otherwise a Problem, Unanswered or
        NotALease. After AMBIGUOUS it returns when the router knows the fate. If it is cancelled, the
        request is cut and reported; ``outcome_of`` the CancelledError says then how it ended."""
        options: dict[str, Any] = {
            "text": text, "return_logprob": return_logprob, "wait": wait, "timeout": timeout,
            "executions": executions, "request_id": request_id, "route": route, "headers": headers, "traceparent": traceparent, **body,
        }
        return await self._generate(turn(input_ids, sampling_params, **options), None)

    @contextlib.asynccontextmanager
    async def stream(self, *args: Any, **options: Any) -> AsyncIterator[Stream]:
        """Like generate, with the same arguments, event by event:

        ``async with session.stream(ids, params) as events: async for event in events: ...``

        The result is ``events.result`` once the events have come to their end. Leaving before cuts the
        request; ``events.error`` says then how it ended."""
        asked = turn(*args, **{**options, "stream": True})
        events = Stream(lambda each: self._generate(asked, each))
        try:
            yield events
        finally:
            await events.close()

    async def _generate(self, asked: Turn, each: Each | None) -> Result:
        await self._resolve()
        wait, attempts = FIRST_WAIT, 1 if asked.request_id else self._office.config.attempts
        for attempt in range(1, attempts + 1):
            lease = await acquire(self._office, self._request(asked))
            with self._lock:
                self._last_lease = lease
                self._last_backend = Backend(lease.backend.name, lease.backend.incarnation)
            try:
                return await Attempt(self._office, lease, asked, each).run()
            except NotSent as err:
                if attempt == attempts or isinstance(err.__cause__, (StaleEpoch, TimeoutError)):
                    raise
            await rest(wait)
            wait = min(2 * wait, LAST_WAIT)
        raise AssertionError("there is at least one attempt")

    def _request(self, asked: Turn) -> LeaseRequest:
        return LeaseRequest(
            request_id=asked.request_id or "r" + secrets.token_hex(16),
            session_id=self.id,
            sender=self.sender,
            sender_generation=self.sender_generation,
            epoch=self.epoch,
            group=self.group,
            executions=asked.executions,
            last_backend=self.last_backend,
            wait=asked.wait,
            traceparent=asked.traceparent,
        )
