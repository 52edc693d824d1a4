"""A generation, event by event."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from ._engine import Each
from .errors import OutcomeError, outcome_of
from .result import Result

_MOST_WAITING = 64
"""How many events may wait for their reader; then the engine's connection does."""


class Stream:
    """The events of a generation, each as the engine sent it. Iterating raises what generate would."""

    def __init__(self, generate: Callable[[Each], Coroutine[Any, Any, Result]]) -> None:
        self._events: deque[dict[str, Any]] = deque()
        self._news = asyncio.Event()
        """Set while there is something to read, or the end."""
        self._room = asyncio.Event()
        self._room.set()
        self.error: OutcomeError | None = None
        """How the request ended, if it did not succeed; None before it has."""
        self._task = asyncio.ensure_future(self._run(generate))
        self._task.add_done_callback(lambda _: self._news.set())

    async def _run(self, generate: Callable[[Each], Coroutine[Any, Any, Result]]) -> Result:
        try:
            return await generate(self._put)
        except (OutcomeError, asyncio.CancelledError) as err:
            self.error = outcome_of(err)
            raise

    @property
    def result(self) -> Result:
        """The whole reply. It raises an InvalidStateError before the end, and what generate would if
        the request did not succeed."""
        return self._task.result()

    async def _put(self, event: dict[str, Any]) -> None:
        await self._room.wait()
        self._events.append(event)
        self._news.set()
        if len(self._events) >= _MOST_WAITING:
            self._room.clear()

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> dict[str, Any]:
        await self._news.wait()
        if self._events:
            event = self._events.popleft()
            self._room.set()
            if not self._events and not self._task.done():
                self._news.clear()
            return event
        self._task.result()
        raise StopAsyncIteration

    async def close(self) -> None:
        """Cuts the request if it has not come to its end, and waits until it is reported."""
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.exception()  # whoever left early does not want to hear of it
