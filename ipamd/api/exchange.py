"""Owns one request on its way to a handler and back: what the handler is given, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

from aiohttp import web

from ipamd.api.access import Caller, ForNodes, Least
from ipamd.api.body import MAX_BODY_BYTES
from ipamd.api.query import encode_cursor
from ipamd.api.schema.common import Given, Items, NoQuery
from ipamd.errors import ApiError
from ipamd.service import Services
from ipamd.service.request import At, Page, Request

B = TypeVar("B")
Q = TypeVar("Q")
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Exchange(Generic[B, Q]):
    """What a handler is given, parsed. `path` are the variable parts of the path, decoded."""

    services: Services
    caller: Caller
    request: Request
    path: Mapping[str, str]
    query: Q
    body: B
    headers: Mapping[str, str] = field(default_factory=dict)


FEW: Final = 100
"""So many items are written out at once, without taking turns."""


class Text(NamedTuple):
    """A body that is no JSON, with its media type."""

    media_type: str
    body: bytes


class Later(NamedTuple):
    """A value that may take long to make, of so many items."""

    make: Callable[[], Any]
    items: int


class Streamed(NamedTuple):
    """A body that is sent in pieces, by whom is given the request and the headers of every answer."""

    send: Callable[[web.Request, dict[str, str]], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a handler answers. `value` None: no body; a Later: made when it is written out.

    `index` None: whatever this member has applied.
    """

    index: int | None
    value: Any
    status: int = 200


Handler = Callable[[Exchange[Any, Any]], Awaitable[Reply]]


@dataclass(frozen=True)
class Route:
    """A row of the route table: what is served, by whom it may be used, and in which shapes."""

    method: str
    path: str
    handler: Handler
    summary: str
    least: Least
    nodes: ForNodes = ForNodes.NO
    body: type | None = None
    query: type[Given] = NoQuery
    answer: Any = None
    status: int = 200
    or_status: int | None = None
    """Of what was so already."""

    codes: tuple[str, ...] = field(default=())
    most_bytes: int = MAX_BODY_BYTES
    also: str | None = None
    """Another media type that it answers in, where that is asked for."""

    enrols: bool = False
    """Whether it is what a token of the role `enrol` is for."""

    heads: bool = True
    """Of a GET: whether a HEAD is answered too, which costs as much but for the body."""

    gives_back: bool = False
    """Whether it frees what a pod has: never too often, whoever asks."""

    @property
    def writes(self) -> bool:
        """Whether an idempotency key means anything here."""
        return self.method not in {"GET", "HEAD"}

    @property
    def lists(self) -> bool:
        """Whether it may answer so much that callers take turns."""
        return "limit" in self.query.__struct_fields__


def listed(page: At[Page[S]], show: Callable[[S], T], key: Callable[[S], tuple[str | int, ...]]) -> Reply:
    """A page of a list, with the cursor of what follows."""
    items, more = page.value
    cursor = encode_cursor(*key(items[-1])) if more and items else None
    return Reply(page.index, Later(lambda: Items(items=tuple(map(show, items)), next=cursor), len(items)))


def checked(check: Callable[[str], str], text: str) -> str:
    """A variable part of a path that must be a name. Raises ApiError."""
    try:
        return check(text)
    except ValueError as error:
        raise ApiError("invalid_request", str(error)) from None
