"""Calls to the router: one, or one repeated until it is answered. They run on the pool's own loop."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx

from . import _trace
from ._trust import Trust, is_untrusted
from .config import PoolConfig
from .errors import BerthmasterError, NoLeader, NotLeader, Problem, Unanswered, Untrusted, problem

FIRST_WAIT, LAST_WAIT = 0.1, 5.0
"""Seconds between repetitions of a call whose answer was lost."""

_MAX_ANSWER = 1 << 20


class Lost(BerthmasterError):
    """One call got no answer that could be used: nobody knows what the router makes of it."""


class TimedOut(Lost):
    """The router took too long."""


class Stranger(Lost):
    """Whoever answered at the router's address is not trusted, and was told nothing."""


def unanswered(err: BaseException) -> bool:
    """Whether an error leaves open what the router makes of the call, which may then be repeated."""
    if not isinstance(err, Problem):
        return isinstance(err, Lost)
    if type(err) is Problem:  # a fault of the router's, or of somebody in between
        return err.status >= 500 or err.status == 429
    return isinstance(err, (NoLeader, NotLeader))


async def rest(seconds: float) -> None:
    """Waits for about so long, so that many clients do not come back at once."""
    await asyncio.sleep(seconds * (0.75 + random.random() / 2))


class _Line:
    """The connections that were made on one loop under the same authorities."""

    def __init__(self, verify: ssl.SSLContext | bool) -> None:
        self.verify = verify
        self.home = asyncio.get_running_loop()
        self.calls = 0
        """How many calls are under way on it."""
        self.http = httpx.AsyncClient(
            verify=verify, follow_redirects=False, timeout=None,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=30),
        )


class Router:
    """The router, as one pool's client sees it. Its calls raise a Problem, a Lost, or, if a credential
    or the authorities cannot be read, a ConfigError or an OSError."""

    def __init__(self, config: PoolConfig) -> None:
        self._config = config
        self._base = config.base_url.rstrip("/")
        self._trust = Trust("ca_file", config.ca_file)
        self._line: _Line | None = None

    @asynccontextmanager
    async def _connections(self) -> AsyncIterator[httpx.AsyncClient]:
        """The connections for one call. Those under authorities that were replaced are closed with the
        last of their calls; after a fork there is another loop, on which none of the old ones is any use."""
        verify = self._trust.context() if self._base.startswith("https") else False
        line = self._line
        if line is None or line.home is not asyncio.get_running_loop() or line.verify is not verify:
            self._line, before = _Line(verify), line
            if before is not None and before.home is self._line.home and before.calls == 0:
                await before.http.aclose()
            line = self._line
        line.calls += 1
        try:
            yield line.http
        finally:
            line.calls -= 1
            if line is not self._line and line.calls == 0:
                await line.http.aclose()

    async def close(self) -> None:
        line, self._line = self._line, None
        if line is not None and line.home is asyncio.get_running_loop():
            await line.http.aclose()

    async def once(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        patience: float = 0.0,
        sent: Callable[[float], None] | None = None,
        trace: str = "",
    ) -> dict[str, Any]:
        """Makes a call once. ``patience`` is how long the router may take beyond the usual because it
        was asked to wait; ``sent`` is told the monotonic time just before; ``trace`` is the caller's trace
        context."""
        headers = {**self._config.router_headers(), **({_trace.HEADER: trace} if trace else {})}
        try:
            async with self._connections() as http:
                request = http.build_request(method, self._base + path, json=body, headers=headers)
                if sent is not None:
                    sent(time.monotonic())
                # Not asyncio.wait_for, which before Python 3.12 loses a cancellation that comes with the answer.
                with anyio.fail_after(self._config.call_timeout + patience):
                    response = await http.send(request)
        except TimeoutError as err:
            raise TimedOut(f"{method} {path}: there was no answer in time") from err
        except httpx.HTTPError as err:
            kind = Stranger if is_untrusted(err) else Lost
            raise kind(f"{method} {path}: {type(err).__name__}: {err}") from err
        return _understand(response)

    async def repeat(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        patience: float = 0.0,
        sent: Callable[[float], None] | None = None,
        trace: str = "",
    ) -> dict[str, Any]:
        """Makes a call until it is answered. It is begun again for up to ``retry_for``; what was begun by then
        may take its ``call_timeout``, since a call that is cut short says nothing about why the router does
        not answer. It raises Unanswered then."""
        last = time.monotonic() + self._config.retry_for + patience
        wait = FIRST_WAIT
        while True:
            try:
                with anyio.fail_after(last + self._config.call_timeout - time.monotonic()):
                    return await self.once(method, path, body, patience=patience, sent=sent, trace=trace)
            except (Problem, Lost) as err:
                if not unanswered(err):
                    raise
                left = last - time.monotonic()
                if left <= 0:
                    raise _gave_up(f"{method} {path}", err) from err
                wait = max(wait, err.retry_after) if isinstance(err, Problem) else wait
            except TimeoutError:
                late = TimedOut(f"{method} {path}: there was no answer in time")
                raise _gave_up(f"{method} {path}", late) from late
            await rest(min(wait, left))
            wait = min(2 * wait, LAST_WAIT)


def _gave_up(what: str, last: BerthmasterError) -> Unanswered:
    if isinstance(last, Stranger):
        return Untrusted(
            f"{last}: ca_file does not name the router's authorities; a cluster has them in the ConfigMap berthmaster-ca"
        )
    return Unanswered(f"{what}: the router did not answer: {last}")


def _understand(response: httpx.Response) -> dict[str, Any]:
    """Reads an answer: its members, or the refusal that it is."""
    try:
        members = json.loads(response.content[:_MAX_ANSWER]) if response.content.strip() else {}
    except ValueError:
        members = None
    if not response.is_success:
        after = response.headers.get("Retry-After", "")
        described = members if isinstance(members, dict) else {"detail": response.text[:4096]}
        raise problem(response.status_code, described, float(after) if after.isdecimal() else 0.0)
    if not isinstance(members, dict):
        raise Lost(f"the answer to {response.request.method} {response.request.url.path} is not whole")
    trace = response.headers.get("Traceresponse", "")
    return {**members, _trace.HEADER: trace} if trace else members
