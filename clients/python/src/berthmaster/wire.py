"""The words and objects of the lease protocol."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class Outcome(str, enum.Enum):
    """How the client says that an execution ended."""

    SUCCEEDED = "Succeeded"
    """A complete reply."""
    ABORTED = "Aborted"
    """The engine's own terminal abort."""
    NOT_SENT = "NotSent"
    """No byte was written."""
    REJECTED = "Rejected"
    """A complete reply from the short list of refusals after which nothing runs."""
    CANCELLED = "Cancelled"
    """This client cut it."""
    AMBIGUOUS = "Ambiguous"
    """Everything else."""


class Fate(str, enum.Enum):
    """What the router knows of an execution whose outcome left it open."""

    NONE = ""
    """The outcome left nothing open."""
    PENDING = "Pending"
    """It may still run."""
    DEAD = "Dead"
    """It is known to be gone."""
    ISOLATED = "Isolated"
    """It may still run, and its engine takes no leases until it does not."""
    FAILED = "Failed"
    """It may still run, and the pool has failed for it."""

    @classmethod
    def read(cls, value: object) -> Fate:
        """Reads a fate; one that this client does not know is taken for an open one."""
        try:
            return cls(value or "")
        except ValueError:
            return cls.PENDING


@dataclass(frozen=True)
class Backend:
    """One engine, and which life of it."""

    name: str
    incarnation: str
    url: str = ""
    """Where to send requests, without a slash at its end; not part of what the router is told."""


@dataclass(frozen=True)
class PoolState:
    """What the router says of the pool with each renewal."""

    epoch: int
    term: int
    published_version: str
    """The version that new leases promise; empty if they promise none."""
    leasing: str
    """Open, or Held while the pool gives no leases."""
    access: str
    """Open, or Fenced while the lease's sender gets none."""
    failed: bool

    @classmethod
    def read(cls, members: Mapping[str, Any]) -> PoolState:
        return cls(
            epoch=int(members.get("epoch", 0)),
            term=int(members.get("term", 0)),
            published_version=str(members.get("publishedVersion", "")),
            leasing=str(members.get("leasing", "")),
            access=str(members.get("access", "")),
            failed=bool(members.get("failed", False)),
        )


@dataclass(frozen=True)
class LeaseRequest:
    """Asks for a lease. The same request id with the same identity gives the same lease; the
    identity is all but ``last_backend``, ``wait``, ``token`` and ``traceparent``."""

    request_id: str
    session_id: str
    sender: str
    sender_generation: int
    epoch: int
    group: str = ""
    executions: int = 1
    """How many sequences the request generates."""
    last_backend: Backend | None = None
    """Where the session was; None if that is not known."""
    wait: float = 0.0
    """How many seconds to wait in all for a lease that cannot be given yet."""
    token: str = ""
    """That of an earlier answer to the same request, for a router that has taken over since."""
    traceparent: str = ""
    """The caller's W3C trace context; empty: that of its OpenTelemetry span, if it is in one."""

    def identity(self) -> dict[str, Any]:
        members: dict[str, Any] = {
            "sessionID": self.session_id,
            "sender": self.sender,
            "senderGeneration": self.sender_generation,
            "epoch": self.epoch,
        }
        if self.executions != 1:
            members["executions"] = self.executions
        if self.group:
            members["groupID"] = self.group
        return members

    def body(self, wait_seconds: int) -> dict[str, Any]:
        members = {"requestID": self.request_id, **self.identity()}
        if self.last_backend is not None:
            members["lastBackend"] = {
                "name": self.last_backend.name,
                "incarnation": self.last_backend.incarnation,
            }
        if wait_seconds > 0:
            members["waitSeconds"] = wait_seconds
        if self.token:
            members["token"] = self.token
        return members


@dataclass(frozen=True)
class Report:
    """How an execution ended."""

    outcome: Outcome
    output_tokens: int = 0
    """0 if that is not known."""
    prompt_tokens: int = 0
    weight_version: str = ""
    """What the engine's reply named; empty if it named none."""

    def body(self, token: str) -> dict[str, Any]:
        members: dict[str, Any] = {"token": token, "outcome": self.outcome.value}
        if self.output_tokens:
            members["outputTokens"] = self.output_tokens
        if self.prompt_tokens:
            members["promptTokens"] = self.prompt_tokens
        if self.weight_version:
            members["weightVersion"] = self.weight_version
        return members


@dataclass(frozen=True)
class Ending:
    """The router's answer to a release."""

    outcome: Outcome
    fate: Fate = Fate.NONE
    """Set for AMBIGUOUS and CANCELLED."""
    mixed: bool = False
    """The weights changed while it ran."""
