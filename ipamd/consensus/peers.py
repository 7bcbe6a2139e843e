"""Owns the interfaces to the other members: what a member hears of them, and what carries its messages.

The network (wire.py) and a simulated one stand behind the same interface: everything that must hold whatever the
network does is done on this side of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from ipamd.consensus.figures import Figures
from ipamd.core.model import Member

FORMAT = 1
"""The format of what members say to each other: with another one they do not talk."""

Message = dict[str, Any]
"""A message of Raft, as pysyncobj has it."""


class Hello(Struct, frozen=True):
    """What a member says first on a connection. Fields that are not known here are left out: a newer one says more."""

    format: int
    name: str
    member_id: str
    cluster_id: str | None
    """None: its state has no cluster yet."""

    applied: int
    raft: str
    api: str
    others: tuple[tuple[str, str], ...] = ()
    """Where it reaches the others, by name: two members that both moved find each other through a third."""

    level: int = 1
    """What its program knows of the log (core.levels)."""


class Why(StrEnum):
    """Why a member is not let in."""

    FORMAT = "format"
    CLUSTER = "cluster"
    NOT_A_MEMBER = "not_a_member"
    LOST_DATA = "lost_data"
    """The name is known with another id: its data directory was lost, or it is somebody else's."""

    OLD = "old"
    """Its program cannot read the log."""


class Refusal(NamedTuple):
    """What is said instead of a Hello to who is not let in. `applied`: how far the one who says so has come."""

    why: Why
    sentence: str
    applied: int


class Ears(Protocol):
    """What a wire tells: implemented by a member (replica.py). All calls come from the thread that steps the member."""

    figures: Figures

    def hello(self) -> Hello:
        """What to say first on a new connection."""

    def greet(self, hello: Hello) -> Refusal | None:
        """Whether to let in who said this; a Refusal is sent, and the connection closed."""

    def connected(self, hello: Hello) -> None:
        """A connection to a member is up: it was greeted, and has greeted us. An older one is gone already."""

    def disconnected(self, name: str) -> None:
        """The connection to a member is gone."""

    def refused(self, name: str, refusal: Refusal) -> None:
        """A member did not let us in."""

    def received(self, name: str, message: object) -> bool:
        """Something arrived, in order, maybe not a message at all. False: it was none, close the connection."""


class Wire(Protocol):
    """What carries messages: in order and at most once on a connection, or not at all."""

    def listen(self, ears: Ears) -> None:
        """Where to tell what happens; once, before anything else."""

    def open(self, wake: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        """Begin, once, in the running loop of the member's thread.

        `wake`: something was told, the member is to be stepped soon. `fail`: telling it raised, the member must stop.
        """

    def reach(self, members: Sequence[Member]) -> None:
        """Who to be connected with, and where they are; connections to others are closed."""

    def send(self, name: str, message: Message) -> bool:
        """Send a message; False: surely not sent, for want of a connection or of room in its buffer."""

    def close(self) -> None:
        """Close everything."""


class NoWire:
    """The wire of a member that has no peers."""

    def listen(self, ears: Ears) -> None:
        """Nobody is ever heard."""

    def open(self, wake: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        """Nothing begins."""

    def reach(self, members: Sequence[Member]) -> None:
        """Nobody can be reached."""

    def send(self, name: str, message: Message) -> bool:  # noqa: ARG002 - the wire's interface
        """Never sent."""
        return False

    def close(self) -> None:
        """Nothing is open."""


class SnapshotSource(Protocol):
    """Where a member that is far behind gets a snapshot. Called in the loop that started the RaftNode."""

    async def fetch(self, member: Member, path: Path) -> None:
        """Write the newest snapshot of a member to a file, replacing what lies there. Raises Unavailable."""


class Alone(NamedTuple):
    """An empty member founds a cluster of itself."""


ALONE = Alone()


class Gather(NamedTuple):
    """An empty member founds a cluster together with these (itself may be among them); ids are not known yet."""

    peers: tuple[Member, ...]


class Join(NamedTuple):
    """An empty member was taken in by a cluster of these members (itself among them) with the entry at this index."""

    members: tuple[Member, ...]
    added_at: int


Beginning = Alone | Gather | Join
"""What a member does whose state has no cluster yet. A member that has one knows its members from its state."""
