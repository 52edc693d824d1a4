"""Updates of weights: fence, push, publish, open.

The fields are ``spec.senders`` and ``spec.weights`` of inferencepools.inference.berthmaster.io and their
counterparts in the status. A cluster whose resource definition has no ``spec.weights``, and a pool of a later
epoch than the trainer's, refuse an update before anything is fenced.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from .errors import BerthmasterError, one_line
from .kube import KubeAPI, KubeConfig, KubeError
from .wire import Backend

MANAGER = "berthmaster-weights-update"
"""The field manager that owns the fences and the version while and after an update."""
UNDER_WAY = "inference.berthmaster.io/weights-update"
"""The annotation that says which update is under way, and whose."""
FAILED = "inference.berthmaster.io/weights-update-failed"
"""The annotation that says why an update left its senders fenced."""

_POLL = 0.5
_TRIES = 20


class UpdateError(BerthmasterError):
    """An update that could not begin or end; what was fenced stays so."""


class OwnerConflict(UpdateError):
    """Somebody else owns a field that the update has to set: a manifest, as a rule, which would set it
    back. Either that manifest lets go of the field, or ``force_conflicts`` takes it over."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        super().__init__(
            f"others own what this update has to set: {'; '.join(fields)}. Take these fields out of their manifest, or "
            "take them over with force_conflicts"
        )
        self.fields = fields
        """Each field and its owner, in the API server's words."""


@dataclass(frozen=True)
class PoolName:
    namespace: str
    name: str

    def path(self) -> str:
        return f"/apis/inference.berthmaster.io/v1alpha1/namespaces/{self.namespace}/inferencepools/{self.name}"


@dataclass(frozen=True)
class Bounds:
    """How many seconds the steps may take; None: as long as they take."""

    fence: float | None
    publish: float | None


@dataclass(frozen=True)
class WeightsUpdate:
    """An update under way: the senders are fenced, and nothing of theirs runs."""

    version: str
    """What the engines must say of their weights once they have been pushed."""
    senders: tuple[str, ...]
    engines: tuple[Backend, ...]
    """Every engine of the pool, as the router knows them now the fence stands."""


@asynccontextmanager
async def weights_update(
    kube: KubeConfig,
    pool: PoolName,
    version: str,
    senders: tuple[str, ...],
    bounds: Bounds,
    take_over: bool,
    live: Callable[[], Awaitable[Mapping[str, Any]]],
    epoch: int = 0,
    force: bool = False,
) -> AsyncIterator[WeightsUpdate]:
    """See Pool.weights_update, which names the pool and knows its live state."""
    async with KubeAPI(kube) as api:
        update = _Update(api, pool, version, senders, epoch, force)
        await update.begin(take_over)
        try:
            await update.fenced(bounds.fence)
            engines = tuple(
                Backend(b["name"], b["incarnation"], b["url"]) for b in (await live())["backends"] if not b.get("retired")
            )
            yield WeightsUpdate(version, senders, engines)
            await update.publish(bounds.publish)
        except GeneratorExit:
            raise  # nobody runs this any more, and it may not wait for anything
        except BaseException as err:
            # Also if the caller is cancelled or interrupted: who looks at the pool should see why it stands still.
            await asyncio.shield(update.give_up(err))
            raise
        await update.open()


class _Update:
    """The steps of one update, each an apply of everything that its field manager owns by then: what an
    owner does not apply again is removed."""

    def __init__(self, api: KubeAPI, pool: PoolName, version: str, senders: tuple[str, ...], epoch: int, force: bool) -> None:
        self._api = api
        self._pool = pool
        self._version = version
        self._senders = senders
        self._epoch = epoch
        self._force = force
        self._mark = f"{version} {uuid.uuid4()}"
        self._others: dict[str, str] = {}
        """The access of senders that earlier updates fenced or opened, by name."""
        self._weights: dict[str, Any] = {}
        """The version that is in the spec now."""
        self._generation = 0

    def _object(self, access: str, weights: Mapping[str, Any], notes: Mapping[str, str]) -> dict[str, Any]:
        wanted = {**self._others, **dict.fromkeys(self._senders, access)}
        spec: dict[str, Any] = {"senders": [{"name": name, "access": wanted[name]} for name in sorted(wanted)]}
        if weights:
            spec["weights"] = dict(weights)
        metadata = {"name": self._pool.name, "namespace": self._pool.namespace, "annotations": dict(notes)}
        return {
            "apiVersion": "inference.berthmaster.io/v1alpha1", "kind": "InferencePool", "metadata": metadata, "spec": spec,
        }

    def _new_weights(self) -> dict[str, Any]:
        # The epoch that this trainer knows of: one that was replaced meanwhile is refused.
        return {"version": self._version, "epoch": self._epoch, "source": "External"}

    async def begin(self, take_over: bool) -> None:
        """Fences, unless somebody else's update is under way."""
        for _ in range(_TRIES):
            seen = await self._api.get(self._pool.path())
            self._learn(seen, take_over)
            await self._refuse_unless_possible()
            fence = self._object("Fenced", self._weights, {UNDER_WAY: self._mark})
            fence["metadata"]["resourceVersion"] = seen["metadata"]["resourceVersion"]
            try:
                self._generation = _generation(await self._put(fence))
                return
            except KubeError as err:
                if err.status != 409:
                    raise
                # The pool has changed since it was read. Who began an update meanwhile is seen next.
        raise UpdateError(f"the pool changed {_TRIES} times while its senders were to be fenced")

    def _learn(self, seen: Mapping[str, Any], take_over: bool) -> None:
        spec = seen.get("spec") or {}
        self._epoch = self._epoch or int(spec.get("epoch") or 1)
        access = {sender["name"]: sender.get("access") or "Open" for sender in spec.get("senders") or []}
        if missing := [name for name in self._senders if name not in access]:
            raise UpdateError(f"the pool has no sender {', '.join(missing)}")
        notes = seen["metadata"].get("annotations") or {}
        mark = notes.get(UNDER_WAY, "")
        # An update of the same version is this one, begun by a process that has ended meanwhile.
        if mark and FAILED not in notes and not take_over and mark.split(" ")[0] != self._version:
            raise UpdateError(f"another update is under way: {mark}; take_over says that nobody makes it any more")
        self._others = {name: access[name] for name in _owned_senders(seen) if name in access}
        weights = spec.get("weights") or {}
        self._weights = {name: weights[name] for name in ("version", "epoch", "source") if name in weights}

    async def _refuse_unless_possible(self) -> None:
        """Tries what will be published, without doing it: a resource without weights refuses."""
        trial = self._object("Fenced", self._new_weights(), {})
        try:
            await self._put(trial, dry_run="All")
        except KubeError as err:
            if err.status in (400, 422):
                raise UpdateError(f"this pool cannot publish weights: {err}") from err
            raise

    async def fenced(self, within: float | None) -> None:
        """Waits until the status says, of this fence and not of one before, that nothing runs."""

        def stands(status: Mapping[str, Any]) -> bool:
            access = {sender["name"]: sender["access"] for sender in status.get("senders") or []}
            return all(access.get(name) == "Fenced" for name in self._senders)

        await self._until(stands, within, "the senders are fenced")

    async def publish(self, within: float | None) -> None:
        """Publishes, the senders still fenced, and waits until the pool promises the version."""
        self._weights = self._new_weights()
        await self._apply("Fenced", {UNDER_WAY: self._mark})

        def promised(status: Mapping[str, Any]) -> bool:
            return bool((status.get("weights") or {}).get("published") == self._version)

        await self._until(promised, within, f"{self._version} is published")

    async def open(self) -> None:
        await self._apply("Open", {})

    async def give_up(self, why: BaseException) -> None:
        """Leaves the fence and says why. What cannot be said is not allowed to hide the reason."""
        reason = one_line(f"{self._version}: {type(why).__name__}: {why}")
        try:
            await self._apply("Fenced", {UNDER_WAY: self._mark, FAILED: reason})
        except (KubeError, UpdateError, OSError) as err:
            why.__context__ = err

    async def _apply(self, access: str, notes: Mapping[str, str]) -> None:
        self._generation = _generation(await self._put(self._object(access, self._weights, notes)))

    async def _put(self, whole: Mapping[str, Any], dry_run: str = "") -> dict[str, Any]:
        try:
            return await self._api.apply(self._pool.path(), whole, MANAGER, force=self._force, dry_run=dry_run)
        except KubeError as err:
            if err.owned:
                raise OwnerConflict(err.owned) from err
            raise

    async def _until(self, holds: Callable[[Mapping[str, Any]], bool], within: float | None, what: str) -> None:
        """Waits until the status holds, as of a generation not before this update's own write. An API
        server that is away for a moment is waited for."""
        until = None if within is None else time.monotonic() + within
        last: KubeError | None = None
        while True:
            try:
                status = (await self._api.get(self._pool.path())).get("status") or {}
                if int(status.get("observedGeneration", 0)) >= self._generation and holds(status):
                    return
            except KubeError as err:
                if 400 <= err.status < 500 and err.status != 429:
                    raise
                last = err
            if until is not None and time.monotonic() >= until:
                raise UpdateError(f"in {within:g} s it did not come to pass that {what}") from last
            await asyncio.sleep(_POLL)


def _generation(written: Mapping[str, Any]) -> int:
    return int(written["metadata"].get("generation", 0))


def _owned_senders(seen: Mapping[str, Any]) -> list[str]:
    """The senders of which this field manager owns something."""
    names = []
    for entry in seen["metadata"].get("managedFields") or []:
        if entry.get("manager") == MANAGER and entry.get("operation") == "Apply":
            fields = ((entry.get("fieldsV1") or {}).get("f:spec") or {}).get("f:senders") or {}
            names += [json.loads(key[2:])["name"] for key in fields if key.startswith("k:")]
    return names
