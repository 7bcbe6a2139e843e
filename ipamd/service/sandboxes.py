"""Owns looking at the network namespaces of this host's pods from the loop, which must never wait for a file system."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence

from ipamd.core.addresses import Address
from ipamd.core.evidence import Look, Place, is_alive, is_same
from ipamd.core.inventory import Listed
from ipamd.core.reports import WEIGHT
from ipamd.service.ports import Namespaces, NoRecords, Records
from ipamd.service.sandbox import Key
from ipamd.service.sandbox import Sandbox as Sandbox  # noqa: PLC0414 - what is looked at here

Recall = Callable[[bytes], Sandbox | None]

_QUICK = ("/var/run/", "/run/", "/proc/")
"""Where runtimes keep namespaces: in memory, so that a look takes microseconds."""

_PATIENCE_S = 1.0
_LOOK_S = 10.0
_NO_RECORDS = NoRecords()


class Sandboxes:
    """The network namespaces of this host's pods. Used in one loop.

    It remembers in which directories it has seen a namespace with its own eyes: only there does a missing one count as
    gone. And it remembers who was alive with which addresses, so that a node that was away can say what is in use here.
    """

    def __init__(
        self, namespaces: Namespaces, records: Records = _NO_RECORDS, recalled: Recall = lambda _data: None
    ) -> None:
        """`recalled` reads a record: whose it is; None: that cannot be told."""
        self._namespaces, self._records, self._recalled = namespaces, records, recalled
        self._proven: set[Place] = set()
        self._living: dict[Key, Sandbox] = {}
        self.boot_id: str | None = None
        """The boot that the plugins of this host say they run in; None: none has called yet."""

    async def inode(self, path: str) -> int | None:
        """The inode at a namespace's path; None where it cannot be seen, or not soon."""
        if posixpath.normpath(path).startswith(_QUICK):
            return self._meet(path)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await asyncio.to_thread(self._meet, path)
        except TimeoutError:
            return None

    async def look(
        self, mine: Sequence[Sandbox], *, with_records: bool = True, with_forgotten: bool = False
    ) -> tuple[Listed, ...]:
        """What this host sees of its attachments, and of those that it had and that live on. Raises TimeoutError.

        Without records only a namespace that is there counts as alive. With what is forgotten, those too of which only
        the runtime's records tell.
        """
        known: dict[Key, set[Address]] = {}
        for one in mine:
            known.setdefault(one.key, set()).update(one.addresses)
        lost = [one for key, one in self._living.items() if not known.get(key, set()).issuperset(one.addresses)]
        async with asyncio.timeout(_LOOK_S):
            looks, names = await asyncio.to_thread(self._look_at, [*mine, *lost], with_forgotten=with_forgotten)
        for one, look in looks:
            if look.place is not None and is_same(one.netns_inode, look):
                self._proven.add(look.place)
        names = names if with_records else frozenset()
        judged = [
            (one, self._judge(one, look, names, with_place=with_forgotten))
            for one, look in looks
            if one.container_id is not None
        ]
        self._remember(one for one, line in judged if line.alive is True)
        listed = _merged(judged)
        return tuple(line for key, line in listed.items() if key in known or line.alive is True)

    def forget(self, container_id: str, ifname: str) -> None:
        """A DEL was carried out: what the container still has is not its own any more, and it knows."""
        for key in [key for key in self._living if key[1:] == (container_id, ifname)]:
            del self._living[key]

    def _meet(self, path: str) -> int | None:
        look = self._namespaces.look(path)
        if look.place is not None and look.inode is not None:
            self._proven.add(look.place)
        return look.inode

    def _look_at(
        self, sandboxes: Sequence[Sandbox], *, with_forgotten: bool
    ) -> tuple[list[tuple[Sandbox, Look]], frozenset[str]]:
        names = self._records.names()
        forgotten = self._forgotten(sandboxes, names) if with_forgotten else ()
        looks = [(one, self._namespaces.look(one.netns) if one.netns else Look(None)) for one in sandboxes]
        for one in forgotten:
            look = self._namespaces.look(one.netns) if one.netns else Look(None)
            if look.inode is not None or one.netns is None or look.place is None:  # else its namespace is surely gone
                looks.append((one._replace(netns_inode=look.inode), look))
        return looks, names

    def _forgotten(self, sandboxes: Sequence[Sandbox], names: frozenset[str]) -> Iterator[Sandbox]:
        """Those of which only a record tells."""
        known = {one.key for one in sandboxes}
        for name in sorted(names):
            data = self._records.read(name)
            one = None if data is None else self._recalled(data)
            if one is not None and one.key not in known:
                yield one

    def _judge(self, one: Sandbox, look: Look, names: frozenset[str], *, with_place: bool) -> Listed:
        alive = is_alive(
            one.netns or "",
            one.netns_inode,
            look,
            is_proven=look.place in self._proven,
            is_recorded=_is_recorded(one, names),
        )
        place = (one.netns, one.netns_inode) if with_place else (None, None)
        who = (one.cni_network, one.container_id or "", one.ifname, alive, one.pod_ref, one.addresses)
        return Listed(*who, one.pool if with_place else None, *place)

    def _remember(self, living: Iterable[Sandbox]) -> None:
        self._living = {}
        for one in living:
            old = self._living.get(one.key)
            self._living[one.key] = one if old is None else one._replace(addresses=_joined(old, one))


def _merged(judged: Iterable[tuple[Sandbox, Listed]]) -> dict[Key, Listed]:
    """One line for each container's interface, which may have a binding in each of several pools.

    They are of different ADDs where it began anew with another configuration: life counts first, then doubt.
    """
    lines: dict[Key, Listed] = {}
    for one, line in judged:
        old = lines.setdefault(one.key, line)
        if WEIGHT[line.alive] < WEIGHT[old.alive]:
            lines[one.key] = line
        elif line is not old and line.alive is old.alive:
            lines[one.key] = old._replace(addresses=_joined(old, line))
    return lines


def _joined(*having: Sandbox | Listed) -> tuple[Address, ...]:
    return tuple(dict.fromkeys(address for one in having for address in one.addresses))


def _is_recorded(one: Sandbox, names: frozenset[str]) -> bool:
    """Whether the runtime's library has a record of an attachment, in whatever network if that is not known."""
    end = f"-{one.container_id}-{one.ifname}"
    if one.cni_network is not None:
        return f"{one.cni_network}{end}" in names
    return any(name.endswith(end) for name in names)
