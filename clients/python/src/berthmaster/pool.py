"""A pool, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._office import Office
from .config import PoolConfig
from .errors import ConfigError
from .lease import Lease, acquire
from .session import Session
from .wire import Backend, LeaseRequest

if TYPE_CHECKING:
    from .kube import KubeConfig
    from .weights import WeightsUpdate


class Pool:
    """Leases from one pool. It may be used from several event loops and threads, and pickled as its
    configuration. Its calls to the router run on a thread of its own, which starts with the first of
    them and ends with ``close``, or when nobody uses the pool any more, or with the process; what runs
    is released before."""

    def __init__(self, config: PoolConfig) -> None:
        self.config = config
        self._office = Office(config)

    def __reduce__(self) -> tuple[type[Pool], tuple[PoolConfig]]:
        return type(self), (self.config,)

    async def __aenter__(self) -> Pool:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Lets releases that are under way come to their end, and lets go of the connections."""
        await asyncio.get_running_loop().run_in_executor(None, self._office.close)

    def session(
        self,
        session_id: str,
        *,
        sender: str,
        group: str = "",
        epoch: int | None = None,
        sender_generation: int | None = None,
        last_backend: Backend | None = None,
    ) -> Session:
        """A trajectory: ``async with pool.session("t-17", group="g-3", sender="train") as s: ...``.
        Epoch and generation are those of the configuration unless they are given."""
        return Session(
            self._office,
            session_id,
            sender=sender,
            group=group,
            epoch=self.config.epoch if epoch is None else epoch,
            sender_generation=self.config.sender_generation if sender_generation is None else sender_generation,
            last_backend=last_backend,
        )

    async def acquire(self, request: LeaseRequest) -> Lease:
        """Asks for a lease, for callers that send their requests themselves."""
        return await acquire(self._office, request)

    async def live(self) -> dict[str, Any]:
        """The pool as the router sees it now: backends, senders, epoch, versions."""
        return await self._office.thread.run(self._office.router.repeat("GET", ""))

    def weights_update(
        self,
        version: str,
        senders: Sequence[str] = ("train",),
        *,
        kube: KubeConfig | None = None,
        fence_timeout: float | None = None,
        publish_timeout: float | None = 600.0,
        take_over: bool = False,
        epoch: int | None = None,
        force_conflicts: bool = False,
    ) -> AbstractAsyncContextManager[WeightsUpdate]:
        """Fences the named senders, waits until nothing of theirs runs, hands out the engines, and on
        leaving publishes the version and opens the senders again:

        ``async with pool.weights_update("step-42") as update: await push(update.engines)``

        After an exception they stay fenced, with the reason in the pool's annotations. It talks to the
        Kubernetes API, as ``kube`` says; None: as the service account or the kubeconfig does. The times
        bound, in seconds, how long the fence and the publishing may take; None: as long as it takes.
        ``take_over`` says that an update of another version that seems to be under way is nobody's any
        more. ``epoch`` is the pool's as this trainer knows it; None: the client's own, 0: the one that the pool
        has when the update begins. Once the pool's is another, the update is refused. Fields that somebody
        else owns are refused as well, by an OwnerConflict, unless ``force_conflicts`` takes them over."""
        from .kube import KubeConfig
        from .weights import Bounds, PoolName, weights_update

        parts = self.config.base_url.rstrip("/").split("/")
        if len(parts) < 5 or parts[-4] != "namespaces" or parts[-2] != "inferencepools":
            raise ConfigError("base_url", "does not name the pool's namespace and name")
        name = PoolName(parts[-3], parts[-1])
        bounds = Bounds(fence_timeout, publish_timeout)
        return weights_update(
            kube or KubeConfig.find(), name, version, tuple(senders), bounds, take_over, self.live,
            self.config.epoch if epoch is None else epoch, force_conflicts,
        )
