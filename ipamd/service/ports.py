"""Owns what the use cases need of the machine they run on: a clock, random bytes, a look at network namespaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


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

    def is_own(self, name: str) -> bool:
        """Whether a node's whole name is that of this host."""
        return name == self._prefix + self.node

    def follow(self, name: str, to: str) -> None:
        """A node was renamed: if it is the one of this host, answer for it under its new name from now on."""
        if self.is_own(name) and to.startswith(self._prefix):
            self.node = to.removeprefix(self._prefix)
            self.keep_node(self.node)
