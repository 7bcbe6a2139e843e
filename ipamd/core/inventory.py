"""Owns what an inventory says of each binding: who is meant by a line of it, and what of it is worth an entry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ipamd.core.addresses import Address
from ipamd.core.commands import Seen
from ipamd.core.model import Attachment, Owner
from ipamd.core.ports import View
from ipamd.core.reports import current

_PAGE = 500
_WEIGHT = {True: 0, None: 1, False: 2}


class Listed(NamedTuple):
    """One line of an inventory. `cni_network` None: not known; `alive` None: it cannot be told."""

    cni_network: str | None
    container_id: str
    ifname: str
    alive: bool | None
    pod_ref: str | None = None
    addresses: tuple[Address, ...] = ()


@dataclass(frozen=True, slots=True)
class Inventory:
    """What was found on a node. `index`: the log index known before looking; `boot_id` None: somebody else speaks."""

    node: str
    boot_id: str | None
    index: int
    listed: tuple[Listed, ...]
    spooled: int = 0


Key = tuple[str, str]


class Lines:
    """The lines of an inventory, by whom they mean."""

    def __init__(self, listed: Iterable[Listed]) -> None:
        self._by_key: dict[Key, list[Listed]] = {}
        for one in sorted(listed, key=lambda one: _WEIGHT[one.alive]):  # life counts first, then doubt
            self._by_key.setdefault((one.container_id, one.ifname), []).append(one)

    def of(self, attachment: Attachment) -> Listed | None:
        """The line that means an attachment; what either side does not know matches anything."""
        owner = attachment.owner
        if owner is None or owner.container_id is None:
            return None
        lines = self._by_key.get((owner.container_id, attachment.ifname), ())
        return next((one for one in lines if _is_of(one, owner)), None)

    def interfaces(self) -> Iterable[Key]:
        """Container and interface of each line, in a fixed order."""
        return sorted(self._by_key)

    def all(self) -> Iterator[Listed]:
        """Every line."""
        for key in self.interfaces():
            yield from self._by_key[key]


def _is_of(line: Listed, owner: Owner) -> bool:
    return line.cni_network is None or owner.cni_network in (None, line.cni_network)


def seen_of(view: View, inventory: Inventory, now_log_ms: int) -> list[Seen]:
    """What an inventory says that the state does not know yet, of each binding that is old enough to be judged."""
    lines = Lines(inventory.listed)
    found: list[Seen] = []
    for attachment, line in _meant(view, inventory, lines):
        if attachment.bound_index > inventory.index:
            continue
        alive = None if line is None else line.alive
        if inventory.boot_id is None and alive is not True:
            continue
        seen = Seen(attachment.id, attachment.generation, alive, line.cni_network if line else None)
        if _matters(view, attachment, seen, now_log_ms):
            found.append(seen)
    return found


def _meant(view: View, inventory: Inventory, lines: Lines) -> Iterator[tuple[Attachment, Listed | None]]:
    """What is bound on the node, and what an import left without a node that a line means."""
    after = 0
    while page := view.attachments_of_node(inventory.node, after, _PAGE):
        yield from ((one, lines.of(one)) for one in page)
        after = page[-1].id
    for container_id, ifname in lines.interfaces():
        for one in view.attachments_of_container(container_id, ifname):
            if one.owner is not None and one.owner.node is None and (line := lines.of(one)) is not None:
                yield one, line


def _matters(view: View, attachment: Attachment, seen: Seen, now_log_ms: int) -> bool:
    old = current(view.sighting(attachment.id), attachment)
    owner = attachment.owner
    if old is None or old.alive != seen.alive or (owner is not None and owner.node is None):
        return True
    if old.gone_log_ms is not None:
        return now_log_ms - old.gone_log_ms >= view.settings().evidence_grace_s * 1000
    return attachment.suspect and seen.alive is True


def strangers(view: View, inventory: Inventory) -> Sequence[Listed]:
    """The living lines that mean nothing that is bound: their addresses were given up meanwhile."""
    lines = Lines(inventory.listed).all()
    return [one for one in lines if one.alive is True and one.addresses and not _is_bound(view, inventory.node, one)]


def _is_bound(view: View, node: str, line: Listed) -> bool:
    return any(
        one.owner is not None and one.owner.node in (None, node) and _is_of(line, one.owner)
        for one in view.attachments_of_container(line.container_id, line.ifname)
    )
