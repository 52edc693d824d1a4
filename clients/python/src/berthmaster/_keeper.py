"""Keeps a lease for as long as its request lives. It runs on the pool's own loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio

from ._loop import Handle, LoopThread
from .errors import BerthmasterError, ExecutionLost, LeaseEnded, LeaseUnknown, Problem, RequestConflict, StaleEpoch
from .lease import Lease


class Keeper:
    """Renews a lease every third of its TTL, at once when the request has been written, and more often
    while answers are lost. It gives up only once the router calls the lease over: one that comes back
    takes the lease up again by its token, and credentials that fail may be good again soon."""

    def __init__(self, thread: LoopThread, lease: Lease, cut: Callable[[Problem], object]) -> None:
        """``cut`` is called once, on the pool's own thread, if the lease has no right to go on."""
        self._lease = lease
        self._cut = cut
        self._loop = thread.loop()
        self._over = False
        self._renewing = False
        self._written = asyncio.Event()
        self._handle: Handle[None] = thread.start(self._run())

    def tell_written(self) -> None:
        """Closes the start window soon; from any thread, more than once if need be."""
        self._loop.call_soon_threadsafe(self._written.set)

    async def end(self) -> None:
        """Stops renewing; from the pool's own loop. A renewal that is under way comes to its end first: cut
        off, it would take its connection along."""
        self._over = True
        if not self._renewing:
            self._handle.cut()
        try:
            await self._handle.wait()
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and _is_cancelling(current):
                raise

    async def _run(self) -> None:
        wait, started = self._lease.ttl / 3, False
        while not self._over:
            started = await self._due(wait, started)
            self._renewing = True
            try:
                await self._lease.renewing(started=started)
                wait = self._lease.ttl / 3
            except StaleEpoch as err:
                self._cut(err)
                return
            except (LeaseEnded, ExecutionLost, LeaseUnknown, RequestConflict):
                # What the engine still answers counts nevertheless: nobody else was given this request.
                return
            except (BerthmasterError, OSError):
                wait = self._lease.ttl / 12
            finally:
                self._renewing = False

    async def _due(self, wait: float, started: bool) -> bool:
        """Waits for the next renewal to be due, and returns whether the request has been written."""
        if started:
            await asyncio.sleep(wait)
            return True
        with anyio.move_on_after(wait):
            await self._written.wait()
        return self._written.is_set()


def _is_cancelling(task: asyncio.Task[object]) -> bool:
    cancelling = getattr(task, "cancelling", None)  # from Python 3.11 on
    return bool(cancelling and cancelling())
