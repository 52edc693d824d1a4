"""One request on its way to one engine: written once, on a connection of its own."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx

from . import _trace
from ._calls import Lost
from ._verdict import Verdict, judge
from .config import PoolConfig
from .errors import BerthmasterError, Problem
from .lease import Lease
from .wire import Outcome

Each = Callable[[dict[str, Any]], Awaitable[None]]


class WindowClosed(BerthmasterError):
    """The start window of the lease has passed, and a renewal did not open it again."""


class _Cut(Exception):
    """This client stopped reading of its own accord."""


class _Unfinished(Exception):
    """A stream ended without saying that it was complete."""


@dataclass
class Post:
    """What is to be sent, and under which lease."""

    config: PoolConfig
    trust: Callable[[], ssl.SSLContext | bool]
    """What to verify the engine's certificate with; a ConfigError if there is nothing to do it with."""
    lease: Lease
    route: str
    body: dict[str, Any]
    headers: dict[str, str]
    wrote: Callable[[], None]
    """Called once the whole request has been written."""
    each: Each | None = None
    """Given the events of a stream."""
    begun: bool = False
    """Whether a byte may have been written."""
    refusal: BerthmasterError | None = None
    """Why the start window could not be opened; the HTTP library drops the causes of what it raises."""

    async def send(self) -> Verdict:
        """Writes the request and reads the reply. It returns what to report, whatever happens, unless
        it is cancelled."""
        try:
            verify = self.trust()
            headers = {**self.headers, **self.config.engine_headers()}
            if self.lease.traceparent and not any(n.lower() == _trace.HEADER for n in headers):
                headers[_trace.HEADER] = self.lease.traceparent
        except (OSError, BerthmasterError) as err:
            return Verdict(Outcome.NOT_SENT, error=err)
        for name in [n for n in headers if n.lower() in ("idempotency-key", "x-idempotency-key")]:
            del headers[name]  # it would allow proxies on the way to repeat the request
        # No pool, no retries, no proxy, no redirects: nothing between here and the engine may write the
        # request a second time.
        transport = httpx.AsyncHTTPTransport(
            verify=verify, http1=True, http2=False, retries=0, trust_env=False,
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=0),
        )
        timeout = httpx.Timeout(None, connect=self.config.dial_timeout)
        try:
            async with httpx.AsyncClient(
                transport=transport, timeout=timeout, trust_env=False, follow_redirects=False
            ) as client:
                return await self._exchange(client, headers)
        except (httpx.HTTPError, httpx.InvalidURL, BerthmasterError, OSError, _Cut, _Unfinished) as err:
            return Verdict(self._broken(err), error=self.refusal or err)

    def _broken(self, err: Exception) -> Outcome:
        """What to make of a request that got no complete reply."""
        if not self.begun:
            return Outcome.NOT_SENT
        return Outcome.CANCELLED if isinstance(err, _Cut) else Outcome.AMBIGUOUS

    async def _exchange(self, client: httpx.AsyncClient, headers: dict[str, str]) -> Verdict:
        request = client.build_request(
            "POST", self.lease.backend.url + self.route, content=json.dumps({**self.body, "rid": self.lease.rid}),
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity", "Connection": "close", **headers},
            extensions={"trace": self._trace},
        )
        response = await client.send(request, stream=True)
        try:
            return await self._read(response)
        finally:
            await response.aclose()

    async def _trace(self, event: str, _: dict[str, Any]) -> None:
        """Hears from the HTTP library what it is about to do."""
        if event == "http11.send_request_headers.started":
            await self._open_window()
            self.begun = True
        elif event == "http11.send_request_body.complete":
            self.wrote()

    async def _open_window(self) -> None:
        """Makes sure that the request may be begun now. Nothing is awaited between the last look at
        the window and the first byte."""
        if self.lease.may_start(time.monotonic()):
            return
        try:
            await self.lease.renew()
        except (Problem, Lost) as err:
            self.refusal = err
            raise WindowClosed(f"the start window has passed: {err}") from err
        if not self.lease.may_start(time.monotonic()):
            raise WindowClosed("the start window has passed, and a renewal came too late")

    async def _read(self, response: httpx.Response) -> Verdict:
        self.wrote()
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if response.status_code == 200 and kind == "text/event-stream":
            return await self._read_stream(response)
        body = bytearray()
        async for chunk in self._bounded(response):
            body += chunk
        return judge(response.status_code, bytes(body))

    async def _bounded(self, response: httpx.Response) -> AsyncIterator[bytes]:
        left = self.config.max_reply_bytes
        async for chunk in response.aiter_raw():
            left -= len(chunk)
            if left < 0:
                raise _Cut("the reply is longer than max_reply_bytes")
            yield chunk

    async def _read_stream(self, response: httpx.Response) -> Verdict:
        """Reads server-sent events to [DONE], which alone makes a stream complete. Each sequence of a
        batch reports its own counts, cumulatively, so that the latest event of each index counts."""
        latest: dict[int, dict[str, Any]] = {}
        verdict, rest = Verdict(Outcome.SUCCEEDED, 200), b""
        async for chunk in self._bounded(response):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if not line.startswith(b"data:"):
                    continue
                data = line[len(b"data:"):].strip()
                if data == b"[DONE]":
                    return _finished(verdict, latest)
                event = _event(data)
                verdict.add(event)
                latest[event.get("index") or 0] = event
                if self.each is not None:
                    await self.each(event)
        raise _Unfinished("the stream ended before [DONE]")


def _event(data: bytes) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except ValueError as err:
        raise _Unfinished(f"an event of the stream cannot be read: {err}") from err
    if not isinstance(event, dict):
        raise _Unfinished("an event of the stream is not an object")
    return event


def _finished(verdict: Verdict, latest: dict[int, dict[str, Any]]) -> Verdict:
    """What all events said of how it ended, with the counts and texts of the latest ones."""
    whole = Verdict(verdict.outcome, 200, [latest[index] for index in sorted(latest)], verdict.message)
    for reply in whole.replies:
        whole.add(reply)
    whole.outcome, whole.message = verdict.outcome, verdict.message
    return whole
