"""What an engine's reply means, and what to report of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from .errors import one_line
from .wire import Outcome


@dataclass
class Verdict:
    """What became of a request."""

    outcome: Outcome
    status: int = 0
    """Of a complete reply."""
    replies: list[dict[str, Any]] = field(default_factory=list)
    """The engine's account of each sequence, of a complete reply."""
    message: str = ""
    """The engine's explanation."""
    weight_version: str = ""
    output_tokens: int = 0
    prompt_tokens: int = 0
    error: BaseException | None = None

    def add(self, reply: dict[str, Any]) -> None:
        """Adds one sequence's account. An abort of any is an abort of the request; an error in a reply
        of status 200 leaves it open what ran."""
        meta, usage = _member(reply, "meta_info"), _member(reply, "usage")
        self.weight_version = str(
            meta.get("weight_version") or _member(reply, "metadata").get("weight_version") or self.weight_version
        )
        for counts in (meta, usage):
            self.output_tokens += _count(counts, "completion_tokens")
            self.prompt_tokens += _count(counts, "prompt_tokens")
        for reason in _finish_reasons(reply, meta):
            if reason.get("type") == "abort" and self.outcome is Outcome.SUCCEEDED:
                self.outcome, self.message = Outcome.ABORTED, one_line(str(reason.get("message") or ""))
        if reply.get("error") is not None:
            self.outcome, self.message = Outcome.AMBIGUOUS, explanation(json.dumps(reply))


def judge(status: int, body: bytes) -> Verdict:
    """Says what a complete reply means. What is not on the short list of statuses after which nothing
    runs is Ambiguous."""
    verdict = Verdict(Outcome.AMBIGUOUS, status)
    if status != 200:
        verdict.message = explanation(body.decode(errors="replace"))
        if _rejects(status, verdict.message):
            verdict.outcome = Outcome.REJECTED
        return verdict
    try:
        replies = json.loads(body)
    except ValueError as err:
        verdict.error = err
        return verdict
    verdict.replies = replies if isinstance(replies, list) else [replies]
    if not verdict.replies or not all(isinstance(reply, dict) for reply in verdict.replies):
        verdict.error = ValueError("the engine's reply is not what it should be")
        return verdict
    verdict.outcome = Outcome.SUCCEEDED
    for reply in verdict.replies:
        verdict.add(reply)
    return verdict


def _rejects(status: int, message: str) -> bool:
    words = message.lower()
    if status == 400:
        # A duplicate rid says that the request is running already, by whoever sent it.
        return bool(words) and "duplicate" not in words and "request id" not in words
    if status == 503:
        return "queue is full" in words
    return status in (401, 403, 404, 413, 429)


def explanation(body: str) -> str:
    """Finds the engine's words in an error body: ``{"message"}``, ``{"error": {"message"}}``,
    ``{"error": "text"}``, ``{"detail"}``, or plain text."""
    try:
        reply = json.loads(body)
    except ValueError:
        return one_line(body)
    if not isinstance(reply, dict):
        return one_line(body)
    error = reply.get("error")
    nested = error.get("message") if isinstance(error, dict) else error
    return one_line(str(reply.get("message") or nested or reply.get("detail") or ""))


def _member(reply: dict[str, Any], name: str) -> dict[str, Any]:
    value = reply.get(name)
    return value if isinstance(value, dict) else {}


def _count(counts: dict[str, Any], name: str) -> int:
    value = counts.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def _finish_reasons(reply: dict[str, Any], meta: dict[str, Any]) -> list[dict[str, Any]]:
    """Why sequences ended: an object on /generate, a word on the OpenAI routes, None while one has
    not."""
    reasons = [meta.get("finish_reason")]
    choices = reply.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        reasons.append(choice.get("finish_reason") if isinstance(choice, dict) else None)
    return [{"type": reason} if isinstance(reason, str) else reason for reason in reasons if reason]
