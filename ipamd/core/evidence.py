"""Owns what counts as evidence of life: what a host sees at the path of a namespace, and what that says of a container.

Unknown means keep. A namespace is gone only for a host that surely looks in the right place: its view of the directory
is proven by another namespace, or this one, that it saw there with its own eyes.
"""

from __future__ import annotations

from typing import NamedTuple

FIRST_NAMESPACE_INODE = 0xF000_0000
"""The kernel numbers namespaces from here on (PROC_DYNAMIC_FIRST); what is lower was some other file."""

_PROCESSES = "/proc/"

Place = tuple[int, int]
"""A directory as this host has it mounted now: device and inode."""


class Look(NamedTuple):
    """What a host sees at a path. `inode` None: nothing is there; `place` None: not even its directory can be seen."""

    place: Place | None
    inode: int | None = None
    is_namespace: bool = False
    """Whether it is a namespace, and not the bare file that one was mounted on."""


def is_same(inode: int | None, look: Look) -> bool:
    """Whether a look finds the namespace that was seen before."""
    return inode is not None and look.inode == inode


def is_alive(path: str, inode: int | None, look: Look, *, is_proven: bool, is_recorded: bool) -> bool | None:
    """Whether a container's namespace is there (True), is gone (False), or neither can be told (None).

    `inode` is what was seen at the path when it was bound, `is_proven` says that the host surely sees this directory
    as its containers' runtime does, `is_recorded` that the runtime keeps a record of the attachment: that can save
    what looks gone, and stands for what cannot be looked at, but takes no life away.
    """
    seen = _is_there(path, inode, look, is_proven=is_proven)
    if not is_recorded:
        return seen
    return True if seen is not False else None


def _is_there(path: str, inode: int | None, look: Look, *, is_proven: bool) -> bool | None:
    if inode is None:
        return None
    if look.inode == inode:
        return True
    if look.place is None or not is_proven or path.startswith(_PROCESSES):
        return None  # process ids mean something else in another namespace of processes, or soon after
    if look.inode is None:
        return False
    return False if look.is_namespace and inode >= FIRST_NAMESPACE_INODE else None
