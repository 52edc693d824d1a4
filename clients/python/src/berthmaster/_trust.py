"""Whom to trust: authorities in a file that is replaced while a process runs."""

from __future__ import annotations

import ssl
import threading
from pathlib import Path

from .errors import ConfigError


class Trust:
    """What to verify certificates with, made anew when the file has changed. From any thread."""

    def __init__(self, field: str, file: str) -> None:
        """``field`` is what the configuration calls the file; without one the system's authorities count."""
        self._field = field
        self._file = file
        self._lock = threading.Lock()
        self._text = ""
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """The same object as before while the file says the same. A file that is missing or broken for
        a moment, as in the middle of its replacement, leaves what it said before; if it said nothing
        yet, this raises a ConfigError."""
        with self._lock:
            try:
                text = self._read()
                if self._context is None or text != self._text:
                    self._context, self._text = ssl.create_default_context(cadata=text or None), text
            except (OSError, ssl.SSLError, ValueError) as err:
                if self._context is None:
                    raise ConfigError(self._field, f"there are no authorities to be had from {self._file}: {err}") from err
            return self._context

    def _read(self) -> str:
        if not self._file:
            return ""
        text = Path(self._file).read_text()
        if not text.strip():
            raise ValueError("it is empty")
        return text


def is_untrusted(err: BaseException) -> bool:
    """Whether a connection came to nothing because the other side's certificate is not trusted."""
    seen: set[int] = set()
    step: BaseException | None = err
    while step is not None and id(step) not in seen:
        if isinstance(step, ssl.SSLCertVerificationError):
            return True
        seen.add(id(step))
        step = step.__cause__ or step.__context__
    return False
