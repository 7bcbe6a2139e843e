"""Owns an exchange with a server as values: what an agent asks, what it is told, and who carries it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. `target`: path and query as they came; `mark`: the content type without which nothing is an answer."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    mark: str | None = None

    def saying(self, **headers: str) -> Asked:
        """The same with more headers; `_` in a name stands for `-`."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return replace(self, headers={**self.headers, **more})


@dataclass(frozen=True, slots=True)
class Said:
    """An answer. `headers` finds a name in any case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def index(self) -> int:
        """The log index that it reflects; 0 where it does not say."""
        text = self.headers.get("Ipamd-Index", "")
        return int(text) if text.isascii() and text.isdigit() else 0

    @property
    def is_passing(self) -> bool:
        """Whether another server, or the same a moment later, may have a better one."""
        if self.status in (429, 502, 504):
            return True
        return self.status == 503 and "Retry-After" in self.headers


class Transport(Protocol):
    """Carries requests to servers, over connections that it keeps."""

    async def exchange(self, url: str, asked: Asked, timeout_s: float) -> Said:
        """One request to one server. Raises Unavailable, which says whether the server may have acted on it."""
