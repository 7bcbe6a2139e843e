"""Owns what an import brings: addresses that another IPAM had given away, and the names of what it did not know.

What is not known is open. An open interface has a name that no kernel takes (`:1`, `:2`, ...), and a pod of which only
the container is known is named after it, as every container without pod data is: `_/NODE/CONTAINERID`, with nothing
between the slashes where the node is open too. Whoever comes with the container's id claims it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum

from ipamd.core.addresses import Address
from ipamd.core.codec import Codec
from ipamd.core.model import Attachment, Owner
from ipamd.core.names import NO_NAMESPACE, container_pod_ref, with_cluster
from ipamd.core.values import Value

OPEN = ":"
"""What the name of an open interface begins with; a real one has no colon."""

STAGED_S = 600
"""How long the parts of an import wait for the rest, in seconds of log time."""


class Finding(Value):
    """An address that another IPAM had given away. None: the source did not say.

    `pool` counts the pools that the import names. `place` says where in the source it stands. A pod that is not known
    is named after its container; without container the address is held for its pod.
    """

    pool: int
    address: Address
    place: str
    pod_ref: str
    ifname: str | None
    container_id: str | None
    node: str | None = None
    cni_network: str | None = None


class StagedPart(Value):
    """A part of an import that waits for the others. Nobody reads it but the command that carries the import out."""

    import_id: str
    number: int
    until_log_ms: int
    findings: tuple[Finding, ...]


class Fate(StrEnum):
    """What becomes of a finding."""

    MADE = "made"
    KEPT = "kept"
    """It is so already: nothing changes."""

    GONE = "gone"
    """Its pod gave it back since, and it cools: nothing changes."""

    REFUSED = "refused"


class Verdict(Value):
    """What becomes of a finding, and why: the end of a sentence that begins with the address."""

    fate: Fate
    why: str = ""


class Conflict(Value):
    """What contradicts the rest of a source, or what is there. `why` is the end of a sentence.

    It begins with the address, or, where there is none, with the place.
    """

    place: str
    address: Address | None
    why: str


class _Findings(Value):
    findings: tuple[Finding, ...]


_CODEC: Codec[_Findings] = Codec(1, {1: _Findings})


def encode_findings(findings: tuple[Finding, ...]) -> bytes:
    """Findings as bytes."""
    return _CODEC.encode(_Findings(findings))


def decode_findings(data: bytes) -> tuple[Finding, ...]:
    """The reverse of `encode_findings`. Raises CodecError."""
    return _CODEC.decode(data).findings


def is_open_ifname(ifname: str) -> bool:
    """Whether an attachment waits to be told its interface."""
    return ifname.startswith(OPEN)


def known_ifname(ifname: str) -> str | None:
    """The name of an interface; None: it is open."""
    return None if is_open_ifname(ifname) else ifname


def told_ifname(ifname: str) -> str:
    """The name of an interface in a sentence."""
    return "an interface" if is_open_ifname(ifname) else ifname


def open_ifname(taken: Collection[str]) -> str:
    """A name for one more open interface of a reservation."""
    number = 1
    while f"{OPEN}{number}" in taken:
        number += 1
    return f"{OPEN}{number}"


def pod_ref_of(node: str | None, container_id: str, cluster: str | None = None) -> str:
    """The pod_ref of a container of which no more is known; `node` is the whole name. `cluster` counts without one."""
    if node is None:
        return with_cluster(cluster, container_pod_ref("", container_id))
    of_node, _, bare = node.rpartition(":")
    return with_cluster(of_node or None, container_pod_ref(bare, container_id))


def is_named_after(pod_ref: str, container_id: str | None) -> bool:
    """Whether a pod_ref says no more than which container it is."""
    parts = pod_ref.rpartition(":")[2].split("/")
    return len(parts) == 3 and parts[0] == NO_NAMESPACE and parts[2] == container_id


def is_open_pod(pod_ref: str) -> bool:
    """Whether neither pod nor node of a reservation are known."""
    return pod_ref.rpartition(":")[2].startswith(f"{NO_NAMESPACE}//")


def matches(owner: Owner | None, node: str, cni_network: str | None) -> bool:
    """Whether a binding can be the one of a call. What an import did not know matches anything."""
    return owner is not None and owner.node in (None, node) and owner.cni_network in (None, cni_network)


def named_first(attachments: Sequence[Attachment], ifname: str) -> list[Attachment]:
    """Those of the interface; only where there are none, the open ones, any of which may be it."""
    named = [one for one in attachments if one.ifname == ifname]
    return named or list(attachments)
