"""Owns what the use cases need of the world: a clock, random bytes, a look at network namespaces, other members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from ipamd.core.entries import Item
from ipamd.core.evidence import Look
from ipamd.core.model import Member
from ipamd.core.ports import Answer, Unavailable


class Clock(Protocol):
    """Time, as the operating system tells it. Nothing below `main` asks for it in another way."""

    def monotonic_s(self) -> float:
        """Seconds that never fall, from an arbitrary beginning."""

    def wall_ms(self) -> int:
        """Unix epoch in ms."""


class Random(Protocol):
    """A source of unpredictable bytes."""

    def __call__(self, size: int, /) -> bytes:
        """So many bytes."""


class Namespaces(Protocol):
    """The network namespaces of this host."""

    def inode(self, path: str) -> int | None:
        """The inode at a namespace's path; None where it cannot be seen."""

    def alive(self, path: str, inode: int | None) -> bool | None:
        """Whether the namespace seen there once, with that inode, is there still; None: cannot be told."""

    def look(self, path: str) -> Look:
        """What is at a namespace's path, and in which directory."""


class Records(Protocol):
    """The records that the runtime's CNI library keeps of what it has attached (libcni's cache)."""

    def names(self) -> frozenset[str]:
        """The names of the records made since the host booted: `NETWORK-CONTAINER-INTERFACE`."""

    def read(self, name: str) -> bytes | None:
        """One of them; None: it is gone, or no record."""


class NoRecords:
    """Of a host whose runtime keeps none."""

    def names(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def read(self, name: str) -> bytes | None:  # noqa: ARG002 - the port
        """It is not there."""
        return None


class Texts(Protocol):
    """The small text files of this host."""

    def __call__(self, path: str, /) -> str:
        """The text of a file. Raises OSError, and ValueError for what is no small text."""


def _forget_name(_name: str) -> None:
    """Nobody has to remember it."""


@dataclass(slots=True)
class Facts:
    """Who this process is: its member name, the node name of CNI calls that name none, and the cluster's prefix.

    `keep_node` remembers a new name of the node for the next start.
    """

    member: str
    node: str
    cluster: str | None = None
    keep_node: Callable[[str], None] = _forget_name

    @property
    def _prefix(self) -> str:
        return "" if self.cluster is None else f"{self.cluster}:"

    @property
    def whole_node(self) -> str:
        """The node's name with that of its cluster, as the state has it."""
        return self._prefix + self.node

    def is_own(self, name: str) -> bool:
        """Whether a node's whole name is that of this host."""
        return name == self.whole_node

    def follow(self, name: str, to: str) -> None:
        """A node was renamed: if it is the one of this host, answer for it under its new name from now on."""
        if self.is_own(name) and to.startswith(self._prefix):
            self.node = to.removeprefix(self._prefix)
            self.keep_node(self.node)


class Glimpse(NamedTuple):
    """What a member says of itself: who it is, how far it came, and what it knows of the cluster."""

    name: str
    member_id: str
    cluster_id: str | None
    leader: str | None
    term: int
    applied: int
    committed: int
    certificate_days: int | None
    digests: Mapping[int, str]
    """The digests of its state at a few log indexes."""

    version: str = ""
    """Of its program; empty: it does not say."""

    wall_ms: int | None = None
    """Its wall clock; None: it does not say."""


class Peers(Protocol):
    """The other members, as they are reached by this one. A member is addressed as the state has it."""

    async def propose(self, member: Member, item: Item, timeout_s: float) -> Answer:
        """Have a member put a command into the log, if it leads. Raises Unavailable, ApiError."""

    async def barrier(self, member: Member, timeout_s: float) -> int:
        """The index of a barrier that a member passed, if it leads. Raises Unavailable."""

    async def look(self, member: Member, timeout_s: float) -> Glimpse:
        """What a member says of itself; its name and id may be others than those asked for. Raises Unavailable."""

    async def hand_over(self, member: Member, to: str | None, timeout_s: float) -> None:
        """Have a member that leads hand over to another (None: the most advanced). Raises Unavailable."""

    async def heartbeat(self, member: Member, node: str, timeout_s: float) -> None:
        """Tell a member that leads that a node was heard. Raises Unavailable."""


EXPOSED: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of what an Exposition exposes."""


class Exposition(Protocol):
    """What a monitoring system reads of this process."""

    async def exposed(self) -> bytes:
        """Its metrics, in Prometheus' text format."""


class NoExposition:
    """Of a process that nobody watches."""

    async def exposed(self) -> bytes:
        """Nothing."""
        return b""


class NoPeers:
    """Of a member that meets no others."""

    async def propose(self, member: Member, item: Item, timeout_s: float) -> Answer:  # noqa: ARG002 - the port
        """Nobody is there. Raises Unavailable."""
        raise _unmet(member)

    async def barrier(self, member: Member, timeout_s: float) -> int:  # noqa: ARG002 - the port
        """Nobody is there. Raises Unavailable."""
        raise _unmet(member)

    async def look(self, member: Member, timeout_s: float) -> Glimpse:  # noqa: ARG002 - the port
        """Nobody is there. Raises Unavailable."""
        raise _unmet(member)

    async def hand_over(self, member: Member, to: str | None, timeout_s: float) -> None:  # noqa: ARG002 - the port
        """Nobody is there. Raises Unavailable."""
        raise _unmet(member)

    async def heartbeat(self, member: Member, node: str, timeout_s: float) -> None:  # noqa: ARG002 - the port
        """Nobody is there. Raises Unavailable."""
        raise _unmet(member)


def _unmet(member: Member) -> Unavailable:
    return Unavailable(f"{member.name} cannot be met: this server was started without certificates", "none")
