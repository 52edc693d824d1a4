"""A whole system, which test/e2e runs and tells of in variables of the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass

import berthmaster as bm


@dataclass(frozen=True)
class System:
    """What test/e2e offers."""

    router: str
    """The router, without the pool's path."""
    ca: str
    """The file of the authorities that it is known by; empty: it speaks without TLS."""
    token: str
    """That of a worker who may take leases as train; empty: nobody asks for one."""
    stranger: str
    """That of somebody who may not."""
    overt: str
    """That of the worker, but made for the API server."""
    kubeconfig: str
    """The file by which the API server is reached by whoever may change the pool."""
    engines: tuple[str, ...]

    def config(self, **options: object) -> bm.PoolConfig:
        return bm.PoolConfig.of(self.router, "default", "policy", **{"ca_file": self.ca, "token": self.token, **options})

    @classmethod
    def told(cls) -> System:
        def of(name: str) -> str:
            return os.environ.get("BERTHMASTER_TEST_" + name, "")

        return cls(of("ROUTER"), of("CA"), of("TOKEN"), of("STRANGER"), of("OVERT"), of("KUBECONFIG"), tuple(of("ENGINES").split()))
