"""Leases: to get one, keep it and give it back."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from . import _trace
from ._calls import FIRST_WAIT, TimedOut, rest, unanswered
from ._office import Office
from .errors import BerthmasterError, Contended, Fenced, Held, NoBackend, NotALease, Problem, Unanswered
from .wire import Backend, Ending, Fate, LeaseRequest, Outcome, PoolState, Report

MAX_POLL = 30.0
"""The longest that one call asks the router to wait, so that a connection that died in silence is
noticed. Seconds, as all times here."""
FATE_POLL = 1.0
"""How often a fate is asked for on which the router does not wait."""


class Lease:
    """The right to send one request to one engine. It may be used from any thread and event loop."""

    def __init__(self, office: Office, request_id: str, members: dict[str, Any], sent: float, trace: str = "") -> None:
        backend = members.get("backend")
        if not isinstance(backend, dict) or not backend.get("url"):
            raise NotALease("the router's answer names no engine")
        if not members.get("rid") or not members.get("token") or not members.get("ttlSeconds"):
            raise NotALease("the router's answer has no rid, token or ttlSeconds")
        self.request_id = request_id
        self.backend = Backend(str(backend.get("name")), str(backend.get("incarnation")), str(backend["url"]))
        self.rid = str(members["rid"])
        """Must be the request's rid on the engine."""
        self.weight_version = str(members.get("weightVersion") or "")
        """The version under which it was granted; empty if the pool promises none."""
        self.epoch, self.term = int(members.get("epoch", 0)), int(members.get("term", 0))
        self.ttl = float(members["ttlSeconds"])
        """How long it lives after each renewal."""
        self.token = str(members["token"])
        """Proves it to the router. It is a secret."""
        self.traceparent = trace or str(members.get(_trace.HEADER) or "")
        """The W3C trace context that the engine is to see: the caller's own, else the router's; empty:
        nobody traces it."""
        self._trace = trace
        self._office = office
        self._lock = threading.Lock()
        self._start_by = sent + float(members.get("startSeconds", 0))
        self._mixed = False
        self._state: PoolState | None = None
        self._reported: Report | None = None

    def __repr__(self) -> str:
        return f"Lease(request_id={self.request_id!r}, backend={self.backend!r}, rid={self.rid!r})"

    def may_start(self, now: float) -> bool:
        """Whether the request may be begun at a monotonic time. If it may not, renew first."""
        with self._lock:
            return now < self._start_by

    @property
    def mixed(self) -> bool:
        """Whether the router has said that the weights changed while the lease lived."""
        with self._lock:
            return self._mixed

    @property
    def pool_state(self) -> PoolState | None:
        """What the last renewal said of the pool; None before the first."""
        with self._lock:
            return self._state

    async def renew(self, *, started: bool = False) -> None:
        """Extends the lease by its TTL, once: the caller repeats it if the answer is lost, which is a
        BerthmasterError that is no Problem. ``started`` says that the request has been written."""
        await self._office.thread.run(self.renewing(started=started))

    async def renewing(self, *, started: bool) -> None:
        """The same, on the pool's own loop."""
        sent: list[float] = []
        body = {"token": self.token, **({"started": True} if started else {})}
        members = await self._office.router.once(
            "POST", lease_path(self.request_id, "renew"), body, sent=sent.append, trace=self._trace
        )
        with self._lock:
            if not started:
                self._start_by = sent[-1] + float(members.get("startSeconds", 0))
            self._mixed = self._mixed or bool(members.get("mixed"))
            self._state = PoolState.read(members.get("state") or {})

    async def release(self, report: Report) -> Ending:
        """Says how the execution ended, and repeats itself while answers are lost. After AMBIGUOUS it
        waits until the fate is known."""
        return await self._office.thread.run(self.releasing(report))

    async def releasing(self, report: Report) -> Ending:
        """The same, on the pool's own loop."""
        with self._lock:
            self._reported = report
        ending = await self._release(report)
        if report.outcome is Outcome.AMBIGUOUS:
            ending = await self._await(report, ending)
        return ending

    async def await_fate(self) -> Ending:
        """Waits, after a release as AMBIGUOUS or CANCELLED, until the fate is no longer pending."""
        report = self._reported
        if report is None:
            raise ValueError("the lease has not been released")
        return await self._office.thread.run(self._await(report, Ending(report.outcome, Fate.PENDING)))

    async def _await(self, report: Report, last: Ending) -> Ending:
        while last.fate is Fate.PENDING:
            await rest(FATE_POLL)
            last = await self._release(report)
        return last

    async def _release(self, report: Report) -> Ending:
        ambiguous = report.outcome is Outcome.AMBIGUOUS
        try:
            members = await self._office.router.repeat(
                "POST", lease_path(self.request_id, "release"), report.body(self.token),
                patience=MAX_POLL if ambiguous else 0.0, trace=self._trace,
            )
        except (Contended, Unanswered) as err:
            # The router has taken note, but there is no room to wait there, or it takes long to find out.
            if ambiguous and (isinstance(err, Contended) or isinstance(err.__cause__, TimedOut)):
                return Ending(report.outcome, Fate.PENDING)
            raise
        with self._lock:
            self._mixed = self._mixed or bool(members.get("mixed"))
            return Ending(report.outcome, Fate.read(members.get("fate")), self._mixed)


async def acquire(office: Office, request: LeaseRequest) -> Lease:
    """Asks for a lease and waits for up to ``request.wait`` where waiting helps. It repeats itself
    while answers are lost. A caller that leaves meanwhile leaves no lease behind."""

    request = replace(request, traceparent=request.traceparent or _trace.current())

    def unwanted(lease: Lease) -> None:
        office.thread.start(lease.releasing(Report(Outcome.NOT_SENT)))

    return await office.thread.run(_acquire(office, request), unwanted)


async def _acquire(office: Office, request: LeaseRequest) -> Lease:
    until = time.monotonic() + request.wait
    while True:
        asked = time.monotonic()
        try:
            return await _poll(office, request, until - asked)
        except Problem as refusal:
            if unanswered(refusal):
                await _forgo(office, request)
                raise
            left = until - time.monotonic()
            if left <= 0 or not isinstance(refusal, (Fenced, Held, NoBackend, Contended)):
                raise
            # Waiters are served in the order in which they came, and a rest loses the place: none
            # after a call in which the router let us wait.
            if time.monotonic() - asked < 1.0:
                await rest(min(max(refusal.retry_after, FIRST_WAIT), left))
        except (Unanswered, NotALease, asyncio.CancelledError):
            await _forgo(office, request)
            raise


async def _poll(office: Office, request: LeaseRequest, left: float) -> Lease:
    """Makes one acquire, in which the router may wait for us."""
    wait_seconds = math.ceil(min(left, MAX_POLL)) if left > 0 else 0
    sent: list[float] = []
    members = await office.router.repeat(
        "POST", "/leases", request.body(wait_seconds), patience=wait_seconds, sent=sent.append, trace=request.traceparent
    )
    return Lease(office, request.request_id, members, sent[-1], request.traceparent)


async def _forgo(office: Office, request: LeaseRequest) -> None:
    """Says that the id will not be used, since a lease may have been granted whose answer was
    lost. If this is lost as well, the lease expires by itself."""
    body = {"outcome": Outcome.NOT_SENT.value, **request.identity()}
    try:
        await office.router.once("POST", lease_path(request.request_id, "release"), body, trace=request.traceparent)
    except (BerthmasterError, OSError):
        return


def lease_path(request_id: str, verb: str) -> str:
    return f"/leases/{quote(request_id, safe='')}/{verb}"
