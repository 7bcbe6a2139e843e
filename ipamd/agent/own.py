"""Owns asking the cluster what this node holds, so that this host can look at it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ipamd.agent.upstream import Upstream
from ipamd.core.addresses import AddressError, parse_host
from ipamd.core.ports import Unavailable
from ipamd.service.sandboxes import Sandbox
from ipamd.service.wire import Asked


@dataclass(frozen=True, slots=True)
class Held:
    """What a node holds, and the log index at which it does."""

    index: int
    sandboxes: tuple[Sandbox, ...]


class _Attachment(msgspec.Struct):
    pod_ref: str
    ifname: str
    cni_network: str | None = None
    container_id: str | None = None
    netns: str | None = None
    netns_inode: int | None = None
    addresses: tuple[str, ...] = ()


class _Node(msgspec.Struct):
    attachments: tuple[_Attachment, ...] = ()


async def held_by(upstream: Upstream, node: str, deadline_s: float) -> Held:
    """What the cluster says that a node holds. Raises Unavailable."""
    asked = Asked("GET", f"/v1/nodes/{node}", {"Accept": "application/json"})
    said = await upstream.ask(asked, deadline_s)
    if said.status == 404:
        return Held(said.index, ())
    if said.status != 200:
        raise Unavailable(f"a server does not say what this node holds: it answered with status {said.status}", "none")
    try:
        found = msgspec.json.decode(said.body, type=_Node)
        return Held(said.index, tuple(_sandbox(one) for one in found.attachments))
    except (msgspec.DecodeError, UnicodeDecodeError, AddressError) as error:
        raise Unavailable(f"a server says what this program cannot read: {error}", "none") from None


def _sandbox(one: _Attachment) -> Sandbox:
    addresses = tuple(parse_host(text) for text in one.addresses)
    return Sandbox(one.cni_network, one.container_id, one.ifname, one.netns, one.netns_inode, one.pod_ref, addresses)
