"""What the parts of a pool share: its thread, its connections to the router, and their end."""

from __future__ import annotations

import atexit
import ssl
import weakref

from ._calls import Router
from ._loop import LoopThread
from ._trust import Trust
from .config import PoolConfig


class Office:
    """Shared by a pool, its sessions and its leases; it ends with the last of them, or with ``close``."""

    def __init__(self, config: PoolConfig) -> None:
        self.config = config
        self.router = Router(config)
        self.thread = LoopThread("berthmaster")
        self._engine_trust = Trust("engine_ca_file", config.engine_ca_file)
        self._departure = _Departure(self.thread, self.router, config.release_grace)
        atexit.register(self._departure)
        # Garbage may be collected on the pool's own thread, which cannot wait for itself.
        weakref.finalize(self, self._departure.leave).atexit = False

    def engine_trust(self, url: str) -> ssl.SSLContext | bool:
        """What to verify an engine's certificate with. Nobody makes it for plain HTTP, since it is slow."""
        return self._engine_trust.context() if url.startswith("https") else False

    def close(self) -> None:
        """Lets releases that are under way come to their end, and waits for it."""
        atexit.unregister(self._departure)
        self._departure()


class _Departure:
    """The end of an office, which it can outlive."""

    def __init__(self, thread: LoopThread, router: Router, within: float) -> None:
        self._thread = thread
        self._router = router
        self._within = within

    def __call__(self) -> None:
        self._thread.stop(self._within, self._router.close)

    def leave(self) -> None:
        atexit.unregister(self)
        self._thread.leave(self._within, self._router.close)
