"""Owns what an inventory says of each binding: who is meant by a line of it, and what of it is worth an entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ipamd.core.addresses import Address
from ipamd.core.commands import Seen
from ipamd.core.imports import is_open_ifname
from ipamd.core.model import Attachment, Owner
from ipamd.core.names import InvalidName, check_ifname, check_network
from ipamd.core.ports import View
from ipamd.core.reports import WEIGHT, current
from ipamd.core.values import Value

_PAGE = 500


class Listed(NamedTuple):
    """One line of an inventory. `cni_network` None: not known; `alive` None: it cannot be told."""

    cni_network: str | None
    container_id: str
    ifname: str
    alive: bool | None
    pod_ref: str | None = None
    addresses: tuple[Address, ...] = ()
    pool: str | None = None
    """The pool that the addresses are of, where the node knows."""

    netns: str | None = None
    netns_inode: int | None = None


class Inventory(Value):
    """What was found on a node. `index`: the log index known before looking; `boot_id` None: somebody else speaks."""

    node: str
    boot_id: str | None
    index: int
    listed: tuple[Listed, ...]
    spooled: int = 0


class Lines:
    """The lines of an inventory, by whom they mean."""

    def __init__(self, view: View, inventory: Inventory) -> None:
        self._view, self._node = view, inventory.node
        self._by_container: dict[str, list[Listed]] = {}
        for one in sorted(inventory.listed, key=lambda one: (WEIGHT[one.alive], one.ifname)):
            self._by_container.setdefault(one.container_id, []).append(one)  # life counts first, then doubt

    def of(self, attachment: Attachment) -> Listed | None:
        """The line that means a binding; what either side does not know matches anything.

        An open interface may be any of its container's that no other binding has.
        """
        owner = attachment.owner
        if owner is None or owner.container_id is None:
            return None
        mine = [one for one in self._by_container.get(owner.container_id, ()) if self._is_of(one, owner)]
        named = next((one for one in mine if one.ifname == attachment.ifname), None)
        if named is not None or not is_open_ifname(attachment.ifname):
            return named
        return next((one for one in mine if not any(it.ifname == one.ifname for it in self.meant(one))), None)

    def meant(self, line: Listed) -> Iterator[Attachment]:
        """The bindings that a line may mean: of its interface, and of open ones."""
        for one in self._view.attachments_of_container(line.container_id, line.ifname):
            if one.owner is not None and self._is_of(line, one.owner):
                yield one

    def all(self) -> Iterator[Listed]:
        """Every line, in a fixed order: container by container, interface by interface."""
        for container_id in sorted(self._by_container):
            yield from sorted(self._by_container[container_id], key=lambda one: one.ifname)

    def _is_of(self, line: Listed, owner: Owner) -> bool:
        return owner.node in (None, self._node) and (
            line.cni_network is None or owner.cni_network in (None, line.cni_network)
        )


def seen_of(view: View, inventory: Inventory, now_log_ms: int) -> list[Seen]:
    """What an inventory says that the state does not know yet, of each binding that is old enough to be judged."""
    found: list[Seen] = []
    for attachment, line in _meant(view, inventory):
        if attachment.bound_index > inventory.index:
            continue
        seen = _seen(attachment, line)
        if inventory.boot_id is None and seen.alive is not True:
            continue
        if _matters(view, attachment, seen, now_log_ms):
            found.append(seen)
    return found


def _meant(view: View, inventory: Inventory) -> Iterator[tuple[Attachment, Listed | None]]:
    """What is bound on the node, and what an import left without a node that a line means."""
    lines = Lines(view, inventory)
    after = 0
    while page := view.attachments_of_node(inventory.node, after, _PAGE):
        yield from ((one, lines.of(one)) for one in page)
        after = page[-1].id
    unclaimed = {
        one.id: one for line in lines.all() for one in lines.meant(line) if one.owner is not None and not one.owner.node
    }
    yield from ((one, line) for one in unclaimed.values() if (line := lines.of(one)) is not None)


def _seen(attachment: Attachment, line: Listed | None) -> Seen:
    if line is None:
        return Seen(attachment.id, attachment.generation, None)
    ifname = _valid(check_ifname, line.ifname) if is_open_ifname(attachment.ifname) else None
    return Seen(attachment.id, attachment.generation, line.alive, _valid(check_network, line.cni_network), ifname)


def _valid(check: Callable[[str], str], name: str | None) -> str | None:
    """A name that a node told; None: it is none, and nothing is filled in."""
    try:
        return None if name is None else check(name)
    except InvalidName:
        return None


def _matters(view: View, attachment: Attachment, seen: Seen, now_log_ms: int) -> bool:
    old = current(view.sighting(attachment.id), attachment)
    if old is None or old.alive != seen.alive or _fills(view, attachment, seen):
        return True
    if old.gone_log_ms is not None:
        return now_log_ms - old.gone_log_ms >= view.settings().evidence_grace_s * 1000
    return attachment.suspect and seen.alive is True


def _fills(view: View, attachment: Attachment, seen: Seen) -> bool:
    """Whether a binding is told what an import did not know of it."""
    owner = attachment.owner
    if owner is None or owner.node is None or (owner.cni_network is None and seen.cni_network is not None):
        return owner is not None
    return seen.ifname is not None and all(
        one.ifname != seen.ifname for one in view.attachments(attachment.reservation_id)
    )


def strangers(view: View, inventory: Inventory) -> Sequence[Listed]:
    """The living lines with those of their addresses that were given up meanwhile: nothing that is bound has them."""
    lines = Lines(view, inventory)
    living = [one for one in lines.all() if one.alive is True and one.addresses]
    return [one._replace(addresses=lost) for one in living if (lost := _lost(view, inventory, lines.meant(one), one))]


def _lost(view: View, inventory: Inventory, meant: Iterable[Attachment], line: Listed) -> tuple[Address, ...]:
    """What a living line lost; nothing can be told of what was bound anew since its host was told what it has."""
    bindings = list(meant)
    if any(one.bound_index > inventory.index for one in bindings):
        return ()
    held = {assigned.address for one in bindings for assigned in view.assigned(one.id)}
    return tuple(address for address in line.addresses if address not in held)
