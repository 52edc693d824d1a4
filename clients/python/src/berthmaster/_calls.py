"""Calls to the router: one, or one repeated until it is answered. They run on the pool's own loop."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable
from typing import Any

import anyio
import httpx

from .config import PoolConfig, trust
from .errors import BerthmasterError, NoLeader, NotLeader, Problem, Unanswered, problem

FIRST_WAIT, LAST_WAIT = 0.1, 5.0
"""Seconds between repetitions of a call whose answer was lost."""

_MAX_ANSWER = 1 << 20


class Lost(BerthmasterError):
    """One call got no answer that could be used: nobody knows what the router makes of it."""


class TimedOut(Lost):
    """The router took too long."""


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


class Router:
    """The router, as one pool's client sees it. Its calls raise a Problem, a Lost, or an OSError if
    a credential cannot be read."""

    def __init__(self, config: PoolConfig) -> None:
        self._config = config
        self._base = config.base_url.rstrip("/")
        self._client: httpx.AsyncClient | None = None
        self._home: asyncio.AbstractEventLoop | None = None

    def _http(self) -> httpx.AsyncClient:
        # A client belongs to the loop on which it was made; after a fork there is another one.
        home = asyncio.get_running_loop()
        if self._client is None or self._home is not home:
            self._client, self._home = httpx.AsyncClient(
                verify=trust(self._base, self._config.ca_file), follow_redirects=False, timeout=None,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=64, keepalive_expiry=30),
            ), home
        return self._client

    async def close(self) -> None:
        if self._client is not None and self._home is asyncio.get_running_loop():
            await self._client.aclose()
        self._client = None

    async def once(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        patience: float = 0.0,
        sent: Callable[[float], None] | None = None,
    ) -> dict[str, Any]:
        """Makes a call once. ``patience`` is how long the router may take beyond the usual because it
        was asked to wait; ``sent`` is told the monotonic time just before."""
        headers = self._config.router_headers()
        request = self._http().build_request(method, self._base + path, json=body, headers=headers)
        if sent is not None:
            sent(time.monotonic())
        try:
            # Not asyncio.wait_for, which before Python 3.12 loses a cancellation that comes with the answer.
            with anyio.fail_after(self._config.call_timeout + patience):
                response = await self._http().send(request)
        except TimeoutError as err:
            raise TimedOut(f"{method} {path}: there was no answer in time") from err
        except httpx.HTTPError as err:
            raise Lost(f"{method} {path}: {type(err).__name__}: {err}") from err
        return _understand(response)

    async def repeat(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        patience: float = 0.0,
        sent: Callable[[float], None] | None = None,
    ) -> dict[str, Any]:
        """Makes a call until it is answered, for up to ``retry_for``. It raises Unanswered then."""
        until = time.monotonic() + self._config.retry_for + patience
        wait = FIRST_WAIT
        while True:
            last: BerthmasterError
            try:
                with anyio.fail_after(until - time.monotonic()):
                    return await self.once(method, path, body, patience=patience, sent=sent)
            except (Problem, Lost) as err:
                if not unanswered(err):
                    raise
                last = err
                wait = max(wait, err.retry_after) if isinstance(err, Problem) else wait
            except TimeoutError:
                last = TimedOut(f"{method} {path}: there was no answer in time")
            left = until - time.monotonic()
            if left > 0:
                await rest(min(wait, left))
            if until <= time.monotonic():
                raise Unanswered(f"{method} {path}: the router did not answer: {last}") from last
            wait = min(2 * wait, LAST_WAIT)


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
    return {**members, "traceparent": trace} if trace else members
