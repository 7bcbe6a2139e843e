"""Owns the rules for names: pools, spaces, nodes, members, interfaces, containers, CNI networks and pods.

Each `check_*` gives the text back or raises InvalidName with one sentence; `what` is how the sentence calls the value.
The rules for container, network and interface names are those of CNI's reference implementation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NAME_BYTES = 128
CNI_NAME_BYTES = 256
IFNAME_BYTES = 15
NAMESPACE_BYTES = 63
POD_NAME_BYTES = 253
POD_UID_BYTES = 128

NO_NAMESPACE = "_"
"""The namespace of what has no pod data: the pod_ref is then `_/NODE/CONTAINERID`."""

MEMBER_URI = "ipamd://member/"
"""What stands before a member's name in its certificate."""

_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*").fullmatch
_cni_name = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*").fullmatch
_ifname_hole = re.compile(r"[\s/:\x00-\x1f\x7f]").search


class InvalidName(ValueError):  # noqa: N818 - what the value is
    """A name that breaks its rule; the message quotes it and says which."""


def check_name(text: str, what: str) -> str:
    """The name of a pool, space, node, member or cluster."""
    if len(text) > NAME_BYTES or not _name(text):
        raise InvalidName(
            f"{what} {_quote(text)} must be 1 to {NAME_BYTES} of A-Z a-z 0-9 _ . + -, the first a letter or digit"
        )
    return text


def check_node(text: str, what: str = "node") -> str:
    """The whole name of a node: `NODE` or `CLUSTER:NODE`."""
    cluster, colon, node = text.rpartition(":")
    if colon:
        check_name(cluster, "cluster name")
    check_name(node, what)
    return text


def check_container_id(text: str, what: str = "container_id") -> str:
    """A container id."""
    return _check_cni_name(text, what)


def check_network(text: str, what: str = "cni_network") -> str:
    """The name of a CNI network."""
    return _check_cni_name(text, what)


def check_ifname(text: str, what: str = "ifname") -> str:
    """The name of an interface, as the kernel takes it."""
    if not text or len(_utf8(text)) > IFNAME_BYTES:
        raise InvalidName(f"{what} {_quote(text)} must have 1 to {IFNAME_BYTES} bytes")
    if text in (".", ".."):
        raise InvalidName(f"{what} must not be {text!r}")
    if _ifname_hole(text) or not _printable(text):
        raise InvalidName(f"{what} {_quote(text)} must have no '/', ':', white space or control character")
    return text


def check_pod_uid(text: str, what: str = "pod_uid") -> str:
    """A pod's uid: opaque, but printable and not endless."""
    if not text or len(_utf8(text)) > POD_UID_BYTES or not _printable(text):
        raise InvalidName(f"{what} {_quote(text)} must be 1 to {POD_UID_BYTES} printable bytes")
    return text


def check_pod_ref(text: str, what: str = "pod_ref") -> str:
    """A whole pod_ref: `NAMESPACE/NAME` or `_/NODE/CONTAINERID`, perhaps with `CLUSTER:` before it."""
    cluster, colon, rest = text.rpartition(":")
    if colon:
        check_name(cluster, "cluster name")
    parts = rest.split("/")
    if len(parts) == 3 and parts[0] == NO_NAMESPACE:
        check_name(parts[1], f"node in {what}")
        check_container_id(parts[2], f"container id in {what}")
    else:
        split_pod_ref(rest, what)
    return text


def split_pod_ref(text: str, what: str = "pod_ref") -> tuple[str, str]:
    """The two halves of `NAMESPACE/NAME`, without a cluster before it."""
    namespace, slash, name = text.partition("/")
    if not slash:
        raise InvalidName(f"{what} {_quote(text)} must be NAMESPACE/NAME")
    _check_half(namespace, NAMESPACE_BYTES, f"namespace in {what}")
    _check_half(name, POD_NAME_BYTES, f"name in {what}")
    return namespace, name


def pod_ref_of(namespace: str, name: str) -> str:
    """The pod_ref of a Kubernetes pod."""
    _check_half(namespace, NAMESPACE_BYTES, "pod namespace")
    _check_half(name, POD_NAME_BYTES, "pod name")
    return f"{namespace}/{name}"


def container_pod_ref(node: str, container_id: str) -> str:
    """The pod_ref of a container without pod data; `node` without its cluster."""
    return f"{NO_NAMESPACE}/{node}/{container_id}"


def with_cluster(cluster: str | None, text: str) -> str:
    """A node or pod_ref under the name of its Kubernetes cluster, where it has one."""
    return f"{cluster}:{text}" if cluster else text


def _check_cni_name(text: str, what: str) -> str:
    if len(text) > CNI_NAME_BYTES or not _cni_name(text):
        raise InvalidName(
            f"{what} {_quote(text)} must be 1 to {CNI_NAME_BYTES} of A-Z a-z 0-9 _ . -, the first a letter or digit"
        )
    return text


def _check_half(text: str, most_bytes: int, what: str) -> None:
    """The colon is kept for clusters, the slash for what parts the halves."""
    if not text or len(_utf8(text)) > most_bytes:
        raise InvalidName(f"{what} {_quote(text)} must have 1 to {most_bytes} bytes")
    if "/" in text or ":" in text or not _printable(text):
        raise InvalidName(f"{what} {_quote(text)} must have no '/', ':' or control character")


def _printable(text: str) -> bool:
    return text.isprintable()


def _utf8(text: str) -> bytes:
    """Lone surrogates, which JSON can spell, count too; `_printable` refuses them afterwards."""
    return text.encode("utf-8", "surrogatepass")


def _quote(text: str) -> str:
    """A value in a sentence: escaped, and cut where it would drown the rest."""
    return repr(text) if len(text) <= 64 else f"{text[:61]!r}..."


def member_of(certificate: Mapping[str, Any] | None) -> str | None:
    """The member that a verified certificate stands for, as ssl's `getpeercert` tells one; None: no member."""
    names = [value for kind, value in (certificate or {}).get("subjectAltName", ()) if kind == "URI"]
    found = [name.removeprefix(MEMBER_URI) for name in names if name.startswith(MEMBER_URI)]
    return found[0] if len(found) == 1 else None
