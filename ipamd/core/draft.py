"""Owns the unit of work of one decision: what it reads, what it wants written, the ids and events it makes."""

from __future__ import annotations

from ipamd.core.addresses import Address
from ipamd.core.changes import Change, Drop, Occupy, Put, Record, Vacate
from ipamd.core.commands import CallStart, Origin
from ipamd.core.entries import Stamp
from ipamd.core.model import OLDEST, Boot, Event, EventKind, GenerationFloor, Node, Quarantine, Start
from ipamd.core.ports import View

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
        self.changes: list[Change] = []
        self.last_id = view.last_id
        self.last_event = view.last_event
        self._floors: dict[int, int] = {}
        self._lifted: set[tuple[str, Address]] = set()

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
    ) -> None:
        """Tell that something happened."""
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
            )
        )

    def meet_node(self, name: str) -> None:
        """Remember a node that calls for the first time."""
        if self.view.node(name) is None:
            self.put(Node(name, self.stamp.wall_ms))

    def start(self, node: str, call: CallStart) -> Start:
        """The start of a CNI call in the order of its node; a boot that was never seen becomes the newest.

        A spooled call waited on disk, maybe over a reboot: if its boot was never seen, nobody can say how it lies to
        the others, and it counts as the oldest.
        """
        known = self.view.boot(node, call.boot_id)
        if known is not None:
            return Start(known.order, call.ns)
        self.meet_node(node)
        if call.spooled:
            return OLDEST
        boots = self.view.boots(node)
        order = boots[-1].order + 1 if boots else 1
        for old in boots[: max(0, len(boots) + 1 - MAX_BOOTS)]:
            self.drop(old)
        self.put(Boot(node, call.boot_id, order, self.stamp.wall_ms))
        return Start(order, call.ns)
