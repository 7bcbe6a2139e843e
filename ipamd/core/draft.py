"""Owns the unit of work of one decision: what it reads, what it wants written, the ids and events it makes."""

from __future__ import annotations

from ipamd.core.addresses import Address
from ipamd.core.changes import Change, Drop, Occupy, Put, Record, Vacate
from ipamd.core.commands import CallStart, Origin
from ipamd.core.entries import Stamp
from ipamd.core.model import OLDEST, Boot, Event, EventKind, GenerationFloor, Node, Quarantine, Start
from ipamd.core.ports import View
from ipamd.core.values import replace

MAX_BOOTS = 16
"""How many boots of a node are remembered."""


class Draft:
    """Collects the changes of one command. Nothing is written until the decision is carried out as a whole.

    The view does not show what the draft already wants: a decision that touches one thing twice has to know.
    """

    def __init__(self, view: View, stamp: Stamp, origin: Origin) -> None:
        self.view = view
        self.stamp = stamp
        self.origin = origin
        self.waits_for_nodes: bool | None = None
        """Whether nodes have yet to report since a restore (core.withheld); None: not asked for yet."""

        self.stands = False
        """What is written stands although the command is refused: it is no part of what was asked for."""

        self._begin()

    def _begin(self) -> None:
        self.changes: list[Change] = []
        self.last_id = self.view.last_id
        self.last_event = self.view.last_event
        self._floors: dict[int, int] = {}
        self._lifted: set[tuple[str, Address]] = set()
        self._nodes: dict[str, Node] = {}
        self.booted: list[str] = []
        """Nodes that were heard from a new boot, not their first."""

    def only_tell(self) -> None:
        """The command is refused: what it wanted is forgotten, what is written from here on stands all the same."""
        self._begin()
        self.stands = True

    def new_id(self) -> int:
        """An id that no record ever had."""
        self.last_id += 1
        return self.last_id

    def put(self, record: Record) -> None:
        """Write a record."""
        self.changes.append(Put(record))

    def drop(self, record: Record) -> None:
        """Remove a record."""
        self.changes.append(Drop(record))

    def occupy(self, space: str, address: Address) -> None:
        """Take an address out of what is free."""
        self.changes.append(Occupy(space, address))

    def vacate(self, space: str, address: Address) -> None:
        """Give an address back to what is free."""
        self.changes.append(Vacate(space, address))

    def retire(self, pool_id: int, generation: int) -> None:
        """No attachment of a pool begins at or below this generation from now on."""
        floor = self._floors.setdefault(pool_id, self.view.generation_floor(pool_id))
        if generation > floor:
            self._floors[pool_id] = generation
            self.put(GenerationFloor(pool_id, generation))

    def lift(self, quarantine: Quarantine) -> None:
        """End a quarantine: from here on this decision knows nothing of it."""
        self._lifted.add((quarantine.space, quarantine.address))
        self.drop(quarantine)

    def in_quarantine(self, space: str, address: Address) -> bool:
        """Whether an address is in quarantine and stays so."""
        return self.view.quarantine(space, address) is not None and (space, address) not in self._lifted

    def event(
        self,
        kind: EventKind,
        *,
        space: str | None = None,
        pool: str | None = None,
        pod_ref: str | None = None,
        ifname: str | None = None,
        address: Address | None = None,
        node: str | None = None,
        detail: str = "",
        begins: bool = False,
    ) -> None:
        """Tell that something happened; `begins`: the address had no holder before."""
        self.last_event += 1
        self.put(
            Event(
                self.last_event,
                self.stamp.wall_ms,
                kind,
                self.origin.by,
                self.origin.request_id,
                space,
                pool,
                pod_ref,
                ifname,
                address,
                node,
                detail,
                begins,
            )
        )

    def node(self, name: str) -> Node | None:
        """A node as this decision leaves it."""
        return self._nodes.get(name) or self.view.node(name)

    def put_node(self, node: Node) -> Node:
        """Write a node, and know it so from here on."""
        self._nodes[node.name] = node
        self.put(node)
        return node

    def meet_node(self, name: str) -> Node:
        """Remember a node that calls for the first time."""
        return self.node(name) or self.put_node(Node(name, self.stamp.wall_ms))

    def hear_node(self, name: str) -> Node:
        """A node gives a sign of life: one that was lost is back."""
        node = self.meet_node(name)
        if node.lost_log_ms is None:
            return node
        self.event(EventKind.NODE_BACK, node=name)
        return self.put_node(replace(node, lost_log_ms=None, silent_since_ms=None, back_log_ms=self.stamp.log_ms))

    def start(self, node: str, call: CallStart) -> Start:
        """The start of a CNI call in the order of its node; a boot that was never seen becomes the newest.

        A spooled call waited on disk, maybe over a reboot: if its boot was never seen, nobody can say how it lies to
        the others, and it counts as the oldest.
        """
        known = self.view.boot(node, call.boot_id)
        if call.spooled:
            self.meet_node(node)
            return OLDEST if known is None else Start(known.order, call.ns)
        host = self.hear_node(node)
        if known is None:
            return Start(self._begin_boot(host, call.boot_id), call.ns)
        if known.order < host.newest_boot and not host.clash:
            self.put_node(replace(host, clash=True))
            detail = f"boot {call.boot_id} calls although a newer one was seen: two hosts have this name"
            self.event(EventKind.NODE_NAME_CLASH, node=node, detail=detail)
        return Start(known.order, call.ns)

    def _begin_boot(self, host: Node, boot_id: str) -> int:
        """Remember a boot that is seen for the first time, and forget the oldest; its order."""
        boots, order = self.view.boots(host.name), host.newest_boot + 1
        for old in boots[: max(0, len(boots) + 1 - MAX_BOOTS)]:
            self.drop(old)
        self.put_node(replace(host, newest_boot=order))
        self.put(Boot(host.name, boot_id, order, self.stamp.wall_ms))
        if order > 1:
            self.booted.append(host.name)
        return order
