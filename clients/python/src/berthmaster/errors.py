"""What can go wrong, as exceptions.

A refusal by the router is a :class:`Problem`, of a class of its own for each reason; an execution
that did not succeed is an :class:`OutcomeError`, of a class of its own for each outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .wire import Fate, Outcome

if TYPE_CHECKING:
    from .lease import Lease


class BerthmasterError(Exception):
    """The base of all of them."""


class ConfigError(BerthmasterError):
    """A configuration that cannot be used; ``field`` names the part at fault."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field


class Unanswered(BerthmasterError):
    """A call to the router got no answer in the time for which it was repeated."""


class Untrusted(Unanswered):
    """The router, or who answers in its place, shows a certificate that the authorities of ``ca_file`` do
    not vouch for. In a cluster they are in the ConfigMap berthmaster-ca of the pool's namespace."""


class NotALease(BerthmasterError):
    """The router's answer lacks what a lease needs."""


class Problem(BerthmasterError):
    """A refusal by the router, an RFC 9457 problem document. One with a reason that this version
    does not know, or from somebody in between, is of this class itself."""

    reason = ""
    """The stable word for the refusal; empty if something else than the router answered."""

    def __init__(self, status: int, members: Mapping[str, Any], retry_after: float = 0.0) -> None:
        self.status = status
        self.reason = str(members.get("reason") or "")
        self.detail = one_line(str(members.get("detail") or ""))
        self.field = str(members.get("field") or "")
        """The part of the request at fault, with Invalid."""
        self.outcome = str(members.get("outcome") or "")
        """How the request ended, with LeaseEnded."""
        self.fate = Fate.read(members.get("fate"))
        self.epoch = int(members.get("epoch") or 0)
        """The pool's, with StaleEpoch."""
        self.retry_after = retry_after
        """For how many seconds the router asks to wait; 0 if it does not."""
        super().__init__(": ".join(filter(None, [self.reason or f"status {status}", self.detail])))


class Invalid(Problem):
    """The request is malformed."""


class PoolNotFound(Problem):
    """There is no such pool, or it is gone."""


class RequestConflict(Problem):
    """The request id is in use with another identity, or was released otherwise."""


class LeaseEnded(Problem):
    """The request id has ended."""


class ExecutionLost(Problem):
    """The lease was not renewed in time, and what ran under it is not known."""


class LeaseUnknown(Problem):
    """The router does not know the lease."""


class TokenInvalid(Problem):
    """The lease's token is not one of this pool's."""


class Unauthenticated(Problem):
    """The caller's credentials are missing or not good."""


class Forbidden(Problem):
    """The caller's credentials do not open this."""


class StaleGeneration(Problem):
    """The sender's generation is below the pool's minimum, for good."""


class StaleEpoch(Problem):
    """The pool is in a later epoch."""


class PoolFailed(Problem):
    """The pool has failed and takes no requests until its epoch is raised."""


class SenderUnknown(Problem):
    """The pool has no such sender."""


class Fenced(Problem):
    """The sender is fenced for now."""


class Held(Problem):
    """The pool gives no leases for now."""


class NoBackend(Problem):
    """No engine may take the request for now."""


class Contended(Problem):
    """A limit of the pool is reached for now."""


class NotLeader(Problem):
    """The router's replica is not the one that may answer."""


class NoLeader(Problem):
    """The router has no replica that may answer for now."""


def problem(status: int, members: Mapping[str, Any], retry_after: float = 0.0) -> Problem:
    """Reads a refusal."""
    kinds: dict[str, type[Problem]] = {kind.__name__: kind for kind in Problem.__subclasses__()}
    kinds |= {"SenderFenced": Fenced, "LeasingHeld": Held}
    return kinds.get(str(members.get("reason")), Problem)(status, members, retry_after)


class OutcomeError(BerthmasterError):
    """An execution that did not succeed, after its lease was released. ``__cause__`` is what went
    wrong on the way, None where the engine's reply says it all."""

    outcome = Outcome.AMBIGUOUS

    def __init__(
        self,
        lease: Lease,
        fate: Fate,
        *,
        status: int = 0,
        message: str = "",
        release_error: BerthmasterError | None = None,
    ) -> None:
        self.lease = lease
        """Its ``await_fate`` waits for a fate that is pending."""
        self.fate = fate
        """What the router made of it, for AMBIGUOUS and CANCELLED."""
        self.status = status
        """The engine's HTTP status, 0 if there was no complete reply."""
        self.message = message
        """The engine's own explanation, on one line and bounded."""
        self.release_error = release_error
        """Why the release did not reach the router; None if it did."""
        words = [f"request {lease.request_id} on {lease.backend.name}", self.outcome.value]
        words += [fate.value, f"the engine answered {status}" if status else "", message]
        super().__init__(": ".join(filter(None, words)))

    @property
    def may_repeat(self) -> bool:
        """Whether the turn may be made again, under a new request id: nothing of it runs any more,
        or will."""
        if self.outcome in (Outcome.AMBIGUOUS, Outcome.CANCELLED):
            return self.fate is Fate.DEAD
        return True


class NotSent(OutcomeError):
    """No byte of the request was written."""

    outcome = Outcome.NOT_SENT


class Rejected(OutcomeError):
    """The engine refused it with a complete reply."""

    outcome = Outcome.REJECTED


class Aborted(OutcomeError):
    """The engine aborted it and said so."""

    outcome = Outcome.ABORTED


class Cancelled(OutcomeError):
    """This client cut it."""

    outcome = Outcome.CANCELLED


class Ambiguous(OutcomeError):
    """Nobody can say from here how it ended."""

    outcome = Outcome.AMBIGUOUS


def outcome_error(outcome: Outcome) -> type[OutcomeError]:
    """The class of an outcome, which is not SUCCEEDED."""
    return {kind.outcome: kind for kind in OutcomeError.__subclasses__()}[outcome]


def outcome_of(err: BaseException) -> OutcomeError | None:
    """The OutcomeError that an exception is, or that it was raised from: that of a CancelledError says how
    the request ended that was cut. Python 3.10 keeps it one step further away than later ones."""
    seen: set[int] = set()
    step: BaseException | None = err
    while step is not None and id(step) not in seen:
        if isinstance(step, OutcomeError):
            return step
        seen.add(id(step))
        before = step.__context__  # another error there is one that was handled, not this one's story
        step = step.__cause__ or (before if isinstance(before, asyncio.CancelledError) else None)
    return None


_MAX_TEXT = 512


def one_line(text: str) -> str:
    """Makes foreign text safe to show: no control characters, no runs of white space, bounded."""
    printable = "".join(c if c.isprintable() else " " for c in text[: 8 * _MAX_TEXT])
    line = " ".join(printable.split())
    return line if len(line) <= _MAX_TEXT else line[:_MAX_TEXT] + "..."
