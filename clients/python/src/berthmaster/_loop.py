"""An event loop of its own on a thread of its own.

Calls to the router run here, so that leases are kept while the caller's event loop is blocked, and so
that one pool can serve several event loops, one after the other or at once.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Handle(Generic[T]):
    """A coroutine that runs on a :class:`LoopThread`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._task: asyncio.Task[T] | None = None
        self.future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> None:
        """Starts it; on the loop's thread."""
        self._task = self._loop.create_task(coroutine)
        self._task.add_done_callback(self._settle)

    def _settle(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.future.set_exception(concurrent.futures.CancelledError())
        elif (error := task.exception()) is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(task.result())

    def cancel(self, after: float = 0.0) -> None:
        """Cancels it, from any thread, after so many seconds."""
        self._loop.call_soon_threadsafe(self._loop.call_later, after, self.cut)

    def cut(self) -> None:
        """Cancels it at once; on the loop's thread."""
        if self._task is not None:
            self._task.cancel()

    async def wait(self) -> T:
        """Waits for its result, on whichever loop. To cancel the waiting does not cancel it."""
        return await asyncio.shield(asyncio.wrap_future(self.future))


class LoopThread:
    """Runs coroutines on a thread of its own, which starts with the first of them, and again in a
    process that was forked."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(target=self._serve, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Handle[T]:
        """Starts a coroutine, from any thread."""
        loop = self.loop()
        handle: Handle[T] = Handle(loop)
        loop.call_soon_threadsafe(handle.begin, coroutine)
        return handle

    async def run(self, coroutine: Coroutine[Any, Any, T], unwanted: Callable[[T], object] | None = None) -> T:
        """Runs a coroutine and waits for it. If the waiting is cancelled the coroutine is as well; if
        it comes to its end nevertheless, ``unwanted`` is given what nobody waits for any more, on this
        thread."""
        handle = self.start(coroutine)
        try:
            return await handle.wait()
        except asyncio.CancelledError:
            handle.cancel()
            handle.future.add_done_callback(lambda future: _discard(future, unwanted))
            raise

    def stop(self, within: float, last: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Lets what runs come to its end within so many seconds, cancels the rest, runs ``last``, and ends
        the thread, which it waits for. From another thread."""
        loop, thread = self._let_go()
        if loop is not None and thread is not None:
            asyncio.run_coroutine_threadsafe(_drain(within, last), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def leave(self, within: float, last: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """The same without waiting, from any thread."""
        loop, _ = self._let_go()
        if loop is not None:
            ended = asyncio.run_coroutine_threadsafe(_drain(within, last), loop)
            ended.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.stop))

    def _let_go(self) -> tuple[asyncio.AbstractEventLoop | None, threading.Thread | None]:
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
            return (loop, thread) if self._process == os.getpid() else (None, None)


def _discard(future: concurrent.futures.Future[T], unwanted: Callable[[T], object] | None) -> None:
    if future.exception() is None and unwanted is not None:
        unwanted(future.result())


async def _drain(within: float, last: Callable[[], Coroutine[Any, Any, object]]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if others:
        _, late = await asyncio.wait(others, timeout=within)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
    await last()
