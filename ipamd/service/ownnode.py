"""Owns how a server's own node reaches the cluster: by the use cases of this very process (reporting.Reach)."""

from __future__ import annotations

from collections.abc import Sequence

from ipamd.core.inventory import Inventory
from ipamd.core.ports import Snapshot
from ipamd.service.collection import attachments_of_node
from ipamd.service.nodes import Conflict, Nodes
from ipamd.service.ports import Facts
from ipamd.service.reader import Reader
from ipamd.service.reporting import Known
from ipamd.service.request import Request
from ipamd.service.sandbox import Sandbox

_WHO = "node"


class OwnNode:
    """The node of this server."""

    def __init__(self, nodes: Nodes, reader: Reader, facts: Facts) -> None:
        self._nodes, self._reader, self._facts = nodes, reader, facts

    async def known(self, deadline_s: float) -> Known:
        """What is bound on this node. Raises Unavailable."""
        name = self._facts.whole_node
        found = await self._reader.read(lambda snapshot: _known(snapshot, name), _request(deadline_s))
        return found.value

    async def report(self, inventory: Inventory, cluster_id: str | None, deadline_s: float) -> Sequence[Conflict]:
        """Take in what was found. Raises ApiError, Unavailable."""
        done = await self._nodes.report(inventory, cluster_id, _request(deadline_s))
        return done.value

    async def heartbeat(self, deadline_s: float) -> None:
        """Tell whoever leads. Raises Unavailable."""
        await self._nodes.heartbeat(self._facts.whole_node, _request(deadline_s))


def _request(deadline_s: float) -> Request:
    return Request("system", _WHO, deadline_s)


def _known(snapshot: Snapshot, name: str) -> Known:
    boots = tuple(boot.boot_id for boot in snapshot.boots(name))
    node = snapshot.node(name)
    wants_all = node is None or node.lost_log_ms is not None or snapshot.restored() is not None
    sandboxes = tuple(_sandboxes(snapshot, name))
    return Known(name, snapshot.applied_index, snapshot.cluster_id(), sandboxes, boots, wants_all)


def _sandboxes(snapshot: Snapshot, name: str) -> list[Sandbox]:
    found: list[Sandbox] = []
    for one in attachments_of_node(snapshot, name):
        reservation = snapshot.reservation_by_id(one.reservation_id)
        if one.owner is None or reservation is None:
            continue
        owner = one.owner
        addresses = tuple(assigned.address for assigned in snapshot.assigned(one.id))
        pool = snapshot.pool_by_id(one.pool_id)
        found.append(
            Sandbox(
                owner.cni_network,
                owner.container_id,
                one.ifname,
                owner.netns,
                owner.netns_inode,
                reservation.pod_ref,
                addresses,
                pool.name if pool else None,
            )
        )
    return found
