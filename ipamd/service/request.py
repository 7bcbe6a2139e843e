"""Owns what every use case is told of the request that it serves: who, until when, and under which key."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from ipamd.core.commands import Origin
from ipamd.core.entries import KEEP_KEYED_MS, OP_BYTES

T = TypeVar("T")


class Key(NamedTuple):
    """An idempotency key: the op id that it stands for, what tells another request under it, and how long it lasts."""

    op: bytes
    fingerprint: bytes
    keep_ms: int = KEEP_KEYED_MS

    @classmethod
    def of(cls, by: str, key: str, method: str, target: str, body: bytes) -> Key:
        """The key of a caller's request; `target` is path and query as they came."""
        op = hashlib.sha256(f"{by}\0{key}".encode()).digest()[:OP_BYTES]
        head = f"{method}\0{target}\0".encode()
        return cls(op, hashlib.sha256(head + body).digest()[:16])

    def part(self, number: int) -> Key:
        """The key of one of several commands that a request is carried out by."""
        return self._replace(op=hashlib.sha256(self.op + number.to_bytes(4, "big")).digest()[:OP_BYTES])


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `deadline_s` is on the clock's monotonic scale; `stale`: this member's state will do."""

    by: str
    request_id: str
    deadline_s: float
    key: Key | None = None
    stale: bool = False

    @property
    def origin(self) -> Origin:
        """Who asked, as events keep it."""
        return Origin(self.by, self.request_id)

    def fresh(self) -> Request:
        """The same, not content with this member's state."""
        return replace(self, stale=False)


@dataclass(frozen=True, slots=True)
class At(Generic[T]):
    """A value and the log index that it reflects."""

    index: int
    value: T


class Page(NamedTuple, Generic[T]):
    """Part of a list. `more`: there are further items behind the last one."""

    items: tuple[T, ...]
    more: bool


def page_of(items: list[T], limit: int) -> Page[T]:
    """A page out of up to `limit + 1` items that were read."""
    return Page(tuple(items[:limit]), len(items) > limit)
