"""Owns what decisions read of nodes, and of what is named after them: a part of `ports.View`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from ipamd.core.model import Boot, Cooling, MassSilence, Node, Reservation, Sighting, Tombstone


class NodeView(Protocol):
    """The nodes as a decision may see them."""

    def node(self, name: str) -> Node | None:
        """A node by its name."""

    def known_nodes(self) -> Iterable[Node]:
        """All nodes, by name."""

    def sighting(self, attachment_id: int) -> Sighting | None:
        """What was seen of an attachment last."""

    def mass_silence(self) -> MassSilence | None:
        """The mass silence that stands, or the last one that was confirmed."""

    def boot(self, node: str, boot_id: str) -> Boot | None:
        """A boot of a node."""

    def boots(self, node: str) -> Sequence[Boot]:
        """The boots of a node, oldest first."""

    def tombstones_of_node(self, node: str) -> Iterable[Tombstone]:
        """All tombstones of a node, by (CNI network, container, interface)."""

    def reservations_named(self, prefix: str) -> Sequence[Reservation]:
        """The reservations of all pools whose pod_ref begins with an ASCII text, by id."""

    def cooling_named(self, prefix: str) -> Sequence[Cooling]:
        """What cools for pods of pools that are there, whose pod_ref begins with it, by space and address."""
