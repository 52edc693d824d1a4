"""The caller's trace context, which the router and the engine are told of."""

from __future__ import annotations

import sys
from collections.abc import Mapping

HEADER = "traceparent"
"""The header that carries a W3C trace context."""


def current() -> str:
    """The context of the span that the caller is in, by OpenTelemetry; empty: there is none. A program
    that makes spans has loaded OpenTelemetry's API, so that it is never loaded from here."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return ""
    context = api.get_current_span().get_span_context()
    if not context.is_valid:
        return ""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags) & 0xFF:02x}"


def of(said: str, headers: Mapping[str, str]) -> str:
    """The caller's context: what it says, else what it has put into the engine's headers, else that of
    its span."""
    sent = [value for name, value in headers.items() if name.lower() == HEADER]
    return said or "".join(sent[:1]) or current()
