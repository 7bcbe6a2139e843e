"""Owns how an agent's node reaches its cluster: over the API of whichever server answers (service.reporting.Reach)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from ipamd.agent.upstream import Upstream
from ipamd.cni.answer import read_problem
from ipamd.core.addresses import AddressError, address_text, parse_host
from ipamd.core.inventory import Inventory, Listed
from ipamd.core.ports import Unavailable
from ipamd.service.nodes import Conflict
from ipamd.service.reporting import Known
from ipamd.service.sandbox import Sandbox
from ipamd.service.wire import Asked, Said

_JSON: Final = {"Accept": "application/json", "Content-Type": "application/json"}


class _Attachment(msgspec.Struct):
    """`ifname` is null where an import left it open: nothing can be told of it before it is claimed."""

    pod_ref: str
    ifname: str | None
    cni_network: str | None = None
    container_id: str | None = None
    netns: str | None = None
    netns_inode: int | None = None
    addresses: tuple[str, ...] = ()
    pool: str | None = None


class _Boot(msgspec.Struct):
    boot_id: str


class _Node(msgspec.Struct):
    boots: tuple[_Boot, ...] = ()
    attachments: tuple[_Attachment, ...] = ()
    cluster_id: str | None = None
    restored: bool = False
    state: str = ""


class _Conflict(msgspec.Struct):
    address: str
    pool: str | None = None
    pod_ref: str | None = None
    ifname: str | None = None


class _Reported(msgspec.Struct):
    conflicts: tuple[_Conflict, ...] = ()


class NodeReach:
    """The node of this agent. `name` tells its whole name."""

    def __init__(self, upstream: Upstream, name: Callable[[], str]) -> None:
        self._upstream, self._name = upstream, name

    async def known(self, deadline_s: float) -> Known:
        """What is bound on this node; nothing where the cluster does not know it. Raises Unavailable."""
        return await self.known_of(self._name(), deadline_s)

    async def known_of(self, name: str, deadline_s: float) -> Known:
        """What is bound on a node that this agent answers for. Raises Unavailable."""
        said = await self._upstream.ask(Asked("GET", f"/v1/nodes/{name}", _JSON), deadline_s)
        if said.status == 404:
            return Known(name, said.index, None, (), wants_all=True)
        _check(said)
        try:
            found = msgspec.json.decode(said.body, type=_Node)
            sandboxes = tuple(_sandbox(one, one.ifname) for one in found.attachments if one.ifname is not None)
        except (msgspec.DecodeError, UnicodeDecodeError, AddressError) as error:
            raise _unreadable(error) from None
        boots = tuple(boot.boot_id for boot in found.boots)
        wants_all = found.restored or found.state == "lost"
        return Known(name, said.index, found.cluster_id, sandboxes, boots, wants_all)

    async def report(self, inventory: Inventory, cluster_id: str | None, deadline_s: float) -> Sequence[Conflict]:
        """Send what was found; who else has addresses that are in use here still. Raises Unavailable."""
        body = {
            "boot_id": inventory.boot_id,
            "index": inventory.index,
            "cluster_id": cluster_id,
            "spooled": inventory.spooled,
            "attachments": [_line(one) for one in inventory.listed],
        }
        target = f"/v1/nodes/{inventory.node}/inventory"
        said = await self._upstream.ask(Asked("POST", target, _JSON, msgspec.json.encode(body)), deadline_s)
        _check(said)
        try:
            found = msgspec.json.decode(said.body, type=_Reported).conflicts
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _unreadable(error) from None
        return tuple(Conflict(one.pool, one.pod_ref, one.ifname, one.address) for one in found)

    async def heartbeat(self, deadline_s: float) -> None:
        """Say that this node is there. Raises Unavailable."""
        _check(await self._upstream.ask(Asked("POST", f"/v1/nodes/{self._name()}/heartbeat", _JSON), deadline_s))


def _sandbox(one: _Attachment, ifname: str) -> Sandbox:
    addresses = tuple(parse_host(text) for text in one.addresses)
    place = (one.netns, one.netns_inode)
    return Sandbox(one.cni_network, one.container_id, ifname, *place, one.pod_ref, addresses, one.pool)


def _line(one: Listed) -> dict[str, object]:
    """A line as it is sent. What older servers do not know is sent only where it matters: after a restore."""
    newer = {"pool": one.pool, "netns": one.netns, "netns_inode": one.netns_inode}
    return {
        "cni_network": one.cni_network,
        "container_id": one.container_id,
        "ifname": one.ifname,
        "alive": one.alive,
        "pod_ref": one.pod_ref,
        "addresses": [address_text(address) for address in one.addresses],
        **{name: value for name, value in newer.items() if value is not None},
    }


def _check(said: Said) -> None:
    """Raises Unavailable for what is no success."""
    if said.status >= 300:
        raise Unavailable(read_problem(said.body) or f"a server answered with status {said.status}", "none")


def _unreadable(error: Exception) -> Unavailable:
    return Unavailable(f"a server says what this program cannot read: {error}", "none")
