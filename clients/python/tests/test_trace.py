"""The caller's trace context, without OpenTelemetry as a dependency."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import types

import pytest

from berthmaster import _trace
from berthmaster._attempt import turn

SPAN = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Context:
    """A span's context, as OpenTelemetry has it."""

    def __init__(self, trace: int, span: int) -> None:
        self.trace_id, self.span_id, self.trace_flags = trace, span, 1
        self.is_valid = trace != 0

    def get_span_context(self) -> Context:
        return self


@pytest.fixture
def span(monkeypatch: pytest.MonkeyPatch) -> contextvars.ContextVar[Context]:
    """The current span of a program that has OpenTelemetry; at first there is none."""
    current = contextvars.ContextVar("span", default=Context(0, 0))
    api = types.ModuleType("opentelemetry.trace")
    api.get_current_span = current.get  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", api)
    return current


def test_program_without_opentelemetry_is_in_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    assert _trace.current() == "" and turn([1]).traceparent == ""
    assert "opentelemetry.trace" not in sys.modules


def test_turn_is_in_the_span_of_its_task(span: contextvars.ContextVar[Context]) -> None:
    async def task(trace: int) -> str:
        span.set(Context(trace, 0xB7AD6B7169203331))
        await asyncio.sleep(0)
        return turn([1]).traceparent

    async def story() -> tuple[str, str, str]:
        return await asyncio.gather(task(0x0AF7651916CD43DD8448EB211C80319C), task(7), task(0))

    assert tuple(asyncio.run(story())) == (SPAN, "00-" + 31 * "0" + "7-b7ad6b7169203331-01", "")


def test_what_the_caller_says_goes_before_its_span(span: contextvars.ContextVar[Context]) -> None:
    span.set(Context(7, 7))
    assert turn([1], traceparent=SPAN).traceparent == SPAN
    assert turn([1], headers={"TraceParent": SPAN}).traceparent == SPAN
