"""What a generation gave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._verdict import Verdict
from .errors import BerthmasterError
from .lease import Lease


@dataclass(frozen=True)
class Sample:
    """One sequence."""

    text: str
    output_ids: tuple[int, ...]
    """Its tokens; empty if the engine did not send them."""
    logprobs: tuple[float, ...]
    """One for each token; empty unless they were asked for."""
    finish_reason: str
    weight_version: str
    raw: dict[str, Any]
    """The engine's whole account of it."""

    @classmethod
    def read(cls, reply: dict[str, Any]) -> Sample:
        meta = reply.get("meta_info") or {}
        reason = meta.get("finish_reason") or {}
        pairs = meta.get("output_token_logprobs") or []
        ids = reply.get("output_ids") or [pair[1] for pair in pairs]
        return cls(
            text=str(reply.get("text") or ""),
            output_ids=tuple(ids),
            logprobs=tuple(pair[0] for pair in pairs),
            finish_reason=str(reason.get("type") or "") if isinstance(reason, dict) else str(reason),
            weight_version=str(meta.get("weight_version") or ""),
            raw=reply,
        )


@dataclass(frozen=True)
class VersionSpan:
    """From which to which weights a generation ran."""

    granted: str
    """The version under which the lease was given; empty if the pool promises none."""
    replied: str
    """The version that the reply names, which is the last one; empty if it names none."""
    mixed: bool
    """The router says that the weights changed meanwhile."""


@dataclass(frozen=True)
class Result:
    """A complete reply."""

    samples: tuple[Sample, ...]
    """The sequences, in the engine's order."""
    lease: Lease
    """The lease under which it was generated, released by now."""
    versions: VersionSpan
    output_tokens: int
    prompt_tokens: int
    release_error: BerthmasterError | None = None
    """Why the release did not reach the router, in which case the lease expires by itself; None if it
    did. The result is good in either case."""

    @classmethod
    def read(cls, verdict: Verdict, lease: Lease, release_error: BerthmasterError | None) -> Result:
        return cls(
            samples=tuple(Sample.read(reply) for reply in verdict.replies),
            lease=lease,
            versions=VersionSpan(lease.weight_version, verdict.weight_version, lease.mixed),
            output_tokens=verdict.output_tokens,
            prompt_tokens=verdict.prompt_tokens,
            release_error=release_error,
        )

    @property
    def sample(self) -> Sample:
        """The only sequence; a ValueError if there are several."""
        (only,) = self.samples
        return only

    @property
    def text(self) -> str:
        return self.sample.text

    @property
    def output_ids(self) -> tuple[int, ...]:
        return self.sample.output_ids

    @property
    def logprobs(self) -> tuple[float, ...]:
        return self.sample.logprobs

    @property
    def backend(self) -> str:
        """The name of the engine."""
        return self.lease.backend.name

    @property
    def mixed(self) -> bool:
        return self.versions.mixed
