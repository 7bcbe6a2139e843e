"""Owns the messages of Raft as they may come from outside: five kinds, every field checked, nothing else passes.

They are pysyncobj's, with what it lacks: the term of an acknowledgement, `pre` for the question before an election with
what the asker knows of commits, and `transfer` for an election that the leader asked for. Fields that are not known
here are left out, so that a newer member may say more.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, NotRequired, TypedDict

import msgspec

from ipamd.consensus.peers import Message
from ipamd.core.entries import MAX_ENTRY_BYTES

MAX_DATA_BYTES: Final = MAX_ENTRY_BYTES + 1
"""An entry of ours with the byte that says what it is."""

_Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
_Data = Annotated[bytes, msgspec.Meta(min_length=1, max_length=MAX_DATA_BYTES)]


class RequestVote(TypedDict):
    """A candidate asks for a vote; with `pre`, whether it would get one, and tells how far it knows of commits."""

    type: Literal["request_vote"]
    term: _Number
    last_log_index: _Number
    last_log_term: _Number
    pre: NotRequired[bool]
    transfer: NotRequired[bool]
    commit_index: NotRequired[_Number]
    commit_term: NotRequired[_Number]


class ResponseVote(TypedDict):
    """A vote; with `pre`, the promise of one. There is no message for a refusal."""

    type: Literal["response_vote"]
    term: _Number
    pre: NotRequired[bool]


class AppendEntries(TypedDict):
    """Entries from the leader, or none: a heartbeat. Without the place before them: the receiver is too far behind."""

    type: Literal["append_entries"]
    term: _Number
    commit_index: _Number
    entries: NotRequired[list[tuple[_Data, _Number, _Number]]]
    prevLogIdx: NotRequired[_Number]
    prevLogTerm: NotRequired[_Number]


class NextNodeIdx(TypedDict):
    """How far a follower has come. `reset`: send from there on. A term above the receiver's only tells it that."""

    type: Literal["next_node_idx"]
    term: _Number
    next_node_idx: _Number
    reset: bool
    success: bool


class TimeoutNow(TypedDict):
    """The leader asks the receiver to take over."""

    type: Literal["timeout_now"]
    term: _Number


_KINDS: Final[dict[str, Any]] = {
    "request_vote": RequestVote,
    "response_vote": ResponseVote,
    "append_entries": AppendEntries,
    "next_node_idx": NextNodeIdx,
    "timeout_now": TimeoutNow,
}


class BadMessage(ValueError):  # noqa: N818 - what it is
    """Something arrived that no member of this program's would send."""


def checked(received: object) -> Message:
    """The message, if it is one. Raises BadMessage."""
    if not isinstance(received, dict):
        raise BadMessage(f"a {type(received).__name__} is no message")
    kind = _KINDS.get(received.get("type", "")) if isinstance(received.get("type"), str) else None
    if kind is None:
        raise BadMessage("a message of an unknown type")
    try:
        message: Message = msgspec.convert(received, kind, builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise BadMessage(f"{received['type']}: {error}") from error
    if message["type"] == "append_entries":
        _check_entries(message)
    return message


def _check_entries(message: Message) -> None:
    """Entries follow on each other, and no term is above the leader's or falls."""
    places = [name in message for name in ("entries", "prevLogIdx", "prevLogTerm")]
    if not any(places):
        return
    if not all(places):
        raise BadMessage("append_entries: entries and their place belong together")
    index, term = message["prevLogIdx"], message["prevLogTerm"]
    for _, entry_index, entry_term in message["entries"]:
        index += 1
        if entry_index != index or entry_term < term:
            raise BadMessage(f"append_entries: entry {entry_index} of term {entry_term} stands where {index} belongs")
        term = entry_term
    if term > message["term"]:
        raise BadMessage(f"append_entries: an entry of term {term} from a leader of term {message['term']}")
