"""The same for callers without an event loop."""

from __future__ import annotations

import concurrent.futures
import weakref
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ._loop import LoopThread
from .config import PoolConfig
from .lease import Lease
from .pool import Pool
from .result import Result
from .session import Session
from .wire import Backend, Ending, LeaseRequest, Report

if TYPE_CHECKING:
    from .weights import WeightsUpdate

T = TypeVar("T")


class _Worker:
    """The event loop on which generations of a blocking pool run."""

    def __init__(self) -> None:
        self.thread = LoopThread("berthmaster-generate")
        weakref.finalize(self, self.thread.leave, 0.0, _nothing).atexit = False

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        handle = self.thread.start(coroutine)
        try:
            return handle.future.result()
        except concurrent.futures.CancelledError:
            raise
        except BaseException:
            # Ctrl-C in the middle of a generation cuts it, and waits until it is reported.
            if not handle.future.done():
                handle.cancel()
                concurrent.futures.wait([handle.future])
            raise


async def _nothing() -> None:
    return


class SyncPool:
    """Like Pool, blocking. Threads may share it."""

    def __init__(self, config: PoolConfig) -> None:
        self.pool = Pool(config)
        self._worker = _Worker()

    def __reduce__(self) -> tuple[type[SyncPool], tuple[PoolConfig]]:
        return type(self), (self.pool.config,)

    def __enter__(self) -> SyncPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Lets releases that are under way come to their end, and lets go of the connections."""
        self._worker.thread.stop(self.pool.config.release_grace, self.pool.close)

    def session(
        self,
        session_id: str,
        *,
        sender: str,
        group: str = "",
        epoch: int | None = None,
        sender_generation: int | None = None,
        last_backend: Backend | None = None,
    ) -> SyncSession:
        """A trajectory: ``with pool.session("t-17", sender="train") as s: s.generate(ids, params)``."""
        return SyncSession(
            self._worker,
            self.pool.session(
                session_id, sender=sender, group=group, epoch=epoch,
                sender_generation=sender_generation, last_backend=last_backend,
            ),
        )

    def acquire(self, request: LeaseRequest) -> Lease:
        return self._worker.do(self.pool.acquire(request))

    def release(self, lease: Lease, report: Report) -> Ending:
        return self._worker.do(lease.release(report))

    def await_fate(self, lease: Lease) -> Ending:
        return self._worker.do(lease.await_fate())

    def live(self) -> dict[str, Any]:
        return self._worker.do(self.pool.live())

    @contextmanager
    def weights_update(self, version: str, senders: Sequence[str] = ("train",), **options: Any) -> Iterator[WeightsUpdate]:
        """See Pool.weights_update: ``with pool.weights_update("step-42") as update: push(update.engines)``."""
        scope = self.pool.weights_update(version, senders, **options)
        update = self._worker.do(scope.__aenter__())
        try:
            yield update
        except BaseException as err:
            self._worker.do(scope.__aexit__(type(err), err, err.__traceback__))
            raise
        self._worker.do(scope.__aexit__(None, None, None))


class SyncSession:
    """Like Session, blocking. Threads may share it."""

    def __init__(self, worker: _Worker, session: Session) -> None:
        self._worker = worker
        self.session = session

    def __enter__(self) -> SyncSession:
        self._worker.do(self.session.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.do(self.session.__aexit__(kind, error, trace))

    def generate(self, *args: Any, **options: Any) -> Result:
        """See Session.generate."""
        return self._worker.do(self.session.generate(*args, **options))

    @contextmanager
    def stream(self, *args: Any, **options: Any) -> Iterator[SyncStream]:
        """See Session.stream: ``with s.stream(ids, params) as events: for event in events: ...``."""
        scope = self.session.stream(*args, **options)
        stream = SyncStream(self._worker, self._worker.do(scope.__aenter__()))
        try:
            yield stream
        finally:
            self._worker.do(scope.__aexit__(None, None, None))

    def end(self) -> None:
        """See Session.end."""
        self._worker.do(self.session.end())


class SyncStream:
    """Like Stream, blocking."""

    def __init__(self, worker: _Worker, stream: Any) -> None:
        self._worker = worker
        self.stream = stream

    @property
    def result(self) -> Result:
        result: Result = self.stream.result
        return result

    def __iter__(self) -> SyncStream:
        return self

    def __next__(self) -> dict[str, Any]:
        event = self._worker.do(self._next())
        if event is None:
            raise StopIteration
        return event

    async def _next(self) -> dict[str, Any] | None:
        try:
            event: dict[str, Any] = await self.stream.__anext__()
            return event
        except StopAsyncIteration:
            return None
