"""Owns the JSON of events, and how they are asked for."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from ipamd.api.schema.common import Given, Shown, when
from ipamd.api.schema.reservations import read_address
from ipamd.core.model import Event, EventKind
from ipamd.errors import ApiError
from ipamd.service.events import Wanted

EVENT_STREAM: Final = "text/event-stream"
MAX_NOTE_CHARACTERS: Final = 500

_MOST: Final = 2**63 - 1
_KINDS: Final = {kind.value: kind for kind in EventKind}


class EventsQuery(Given):
    """Of events: those after an index (`latest`: those to come), narrowed. `kind`: one, or several with commas.

    `cluster`: the id of the cluster that gave the index.
    """

    stale: Literal["ok"] | None = None
    after: str | None = None
    cluster: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=5000)] = 500
    cursor: str | None = None
    pool: str | None = None
    pod_ref: str | None = None
    node: str | None = None
    address: str | None = None
    kind: str | None = None

    def wanted(self) -> Wanted:
        """What the events are narrowed to. Raises ApiError."""
        address = None if self.address is None else read_address(self.address, "address")
        kinds = None if self.kind is None else frozenset(_kind(name) for name in self.kind.split(","))
        return Wanted(self.pool, self.pod_ref, self.node, address, kinds)


class NoteBody(Given):
    """A note, and the pool or the node that it is about."""

    text: str
    pool: str | None = None
    node: str | None = None

    def checked_text(self) -> str:
        """The text. Raises ApiError."""
        if not 0 < len(self.text) <= MAX_NOTE_CHARACTERS or not self.text.isprintable():
            detail = f"text is 1 to {MAX_NOTE_CHARACTERS} characters on one line, without control characters"
            raise ApiError("invalid_request", detail)
        return self.text


class EventShown(Shown, omit_defaults=True):
    """Something that happened."""

    index: int
    at: str
    kind: str
    by: str
    request_id: str
    space: str | None = None
    pool: str | None = None
    pod_ref: str | None = None
    ifname: str | None = None
    address: str | None = None
    node: str | None = None
    detail: str = ""


def read_index(text: str, name: str) -> int:
    """The index of an event, 0 for before the first. Raises ApiError."""
    if text.isascii() and text.isdigit() and len(text) <= len(str(_MOST)) and int(text) <= _MOST:
        return int(text)
    raise ApiError("invalid_request", f"{name} must be the index of an event, not {text[:32]!r}")


def show_event(event: Event) -> EventShown:
    """Something that happened."""
    return EventShown(
        index=event.index,
        at=when(event.at_ms),
        kind=event.kind.value,
        by=event.by,
        request_id=event.request_id,
        space=event.space,
        pool=event.pool,
        pod_ref=event.pod_ref,
        ifname=event.ifname,
        address=None if event.address is None else str(event.address),
        node=event.node,
        detail=event.detail,
    )


def _kind(name: str) -> EventKind:
    kind = _KINDS.get(name)
    if kind is None:
        raise ApiError("invalid_request", f"query parameter kind: {name[:32]!r} is none of {', '.join(_KINDS)}")
    return kind
