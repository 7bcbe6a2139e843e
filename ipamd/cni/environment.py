"""Owns what a call says outside its body: the CNI variables and the plugin's own facts, both carried as headers.

Header values are percent-encoded UTF-8: the plugin writes `%XX` for every byte outside visible ASCII and for `%`, so
that nothing in a variable can end a header. A header that is absent stands for a variable that is not set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from ipamd.cni.errors import BAD_ENVIRONMENT, CniError
from ipamd.core.commands import CallStart
from ipamd.core.names import InvalidName, check_container_id, check_ifname, check_name, with_cluster

CONTAINER_ID = "CNI_CONTAINERID"
NETNS = "CNI_NETNS"
IFNAME = "CNI_IFNAME"
ARGS = "CNI_ARGS"
NETNS_INODE = "Ipamd-Netns-Inode"
"""Set by an agent, which alone can look at the namespaces of its host."""

LOOKED = "Ipamd-Looked"
"""Set by an agent at a GC: the log index of what it looked at. Of what was bound later it says nothing."""

DNS = "Ipamd-Dns"
"""Set by an agent for a configuration with `resolvConf`: what stands in that file of its host."""

_HEADERS = {
    CONTAINER_ID: "CNI-ContainerID",
    NETNS: "CNI-Netns",
    IFNAME: "CNI-IfName",
    ARGS: "CNI-Args",
}
_REQUIRED = {
    "add": (CONTAINER_ID, NETNS, IFNAME),
    "check": (CONTAINER_ID, NETNS, IFNAME),
    "del": (CONTAINER_ID, IFNAME),
}
_NETNS_BYTES = 4096
_MOST_NS = 2**63 - 1
_MOST_INODE = 2**63 - 1
_MOST_INDEX = 2**63 - 1
_MOST_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, from when on and until when. `local_node` is the node's name without its cluster."""

    local_node: str
    cluster: str | None
    start: CallStart | None
    deadline_ms: int | None

    @property
    def node(self) -> str:
        """The node's whole name."""
        return with_cluster(self.cluster, self.local_node)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Which interface of which container; `netns` is empty where the verb does not ask for it."""

    container_id: str
    ifname: str
    netns: str


def read_caller(headers: Mapping[str, str], node: str, cluster: str | None) -> Caller:
    """The caller's own words first, then those of the server that answers it. Raises CniError."""
    try:
        return Caller(
            local_node=check_name(_header(headers, "Ipamd-Node") or node, "node name"),
            cluster=_cluster(_header(headers, "Ipamd-Cluster") or cluster),
            start=_start(headers),
            deadline_ms=_deadline_ms(headers),
        )
    except InvalidName as error:
        raise CniError(BAD_ENVIRONMENT, str(error)) from None


def read_sandbox(verb: str, headers: Mapping[str, str]) -> Sandbox:
    """The variables of ADD, DEL and CHECK; all that are missing are named in one sentence. Raises CniError."""
    required = _REQUIRED[verb]
    values = {name: variable(headers, name) for name in required}
    if not all(values.values()):
        raise CniError(BAD_ENVIRONMENT, _missing(verb, values))
    try:
        check_container_id(values[CONTAINER_ID] or "", CONTAINER_ID)
        check_ifname(values[IFNAME] or "", IFNAME)
    except InvalidName as error:
        raise CniError(BAD_ENVIRONMENT, str(error)) from None
    return Sandbox(values[CONTAINER_ID] or "", values[IFNAME] or "", _netns(values.get(NETNS) or ""))


def variable(headers: Mapping[str, str], name: str) -> str | None:
    """A CNI variable; None where it is not set. Raises CniError for one that is no UTF-8."""
    return _header(headers, _HEADERS[name], name)


def netns_inode(headers: Mapping[str, str]) -> int | None:
    """The inode that an agent saw at CNI_NETNS; None: none, or nobody looked. Raises CniError."""
    text = _header(headers, NETNS_INODE)
    return None if not text else _number(text, NETNS_INODE, _MOST_INODE)


def looked(headers: Mapping[str, str]) -> int | None:
    """The log index of what an agent looked at; None: nobody looked before. Raises CniError."""
    text = _header(headers, LOOKED)
    return None if not text else _number(text, LOOKED, _MOST_INDEX)


def dns_text(headers: Mapping[str, str]) -> str | None:
    """The name service settings that an agent hands on; None: it hands on none. Raises CniError."""
    return _header(headers, DNS)


def _header(headers: Mapping[str, str], header: str, what: str | None = None) -> str | None:
    value = headers.get(header)
    if value is None or ("%" not in value and value.isascii()):
        return value
    try:
        return unquote_to_bytes(value.encode("utf-8", "surrogateescape")).decode()
    except UnicodeError:
        raise CniError(BAD_ENVIRONMENT, f"{what or header} is not valid UTF-8") from None


def _missing(verb: str, values: Mapping[str, str | None]) -> str:
    unset = [name for name, value in values.items() if value is None]
    empty = [name for name, value in values.items() if value == ""]
    parts = [*([f"{', '.join(unset)} not set"] if unset else []), *([f"{', '.join(empty)} empty"] if empty else [])]
    return f"{verb.upper()} lacks environment variables: {'; '.join(parts)}"


def _netns(path: str) -> str:
    if len(path.encode("utf-8", "surrogatepass")) > _NETNS_BYTES or not path.isprintable():
        raise CniError(BAD_ENVIRONMENT, f"{NETNS} must be a printable path of at most {_NETNS_BYTES} bytes")
    return path


def _cluster(text: str | None) -> str | None:
    return check_name(text, "cluster name") if text else None


def _start(headers: Mapping[str, str]) -> CallStart | None:
    """Both headers or none: a moment without the boot that it belongs to says nothing."""
    boot_id, started = _header(headers, "Ipamd-Boot-Id"), _header(headers, "Ipamd-Started")
    if not boot_id or not started:
        return None
    spooled = (_header(headers, "Ipamd-Spooled") or "").lower() == "true"
    return CallStart(check_name(boot_id, "boot id"), _number(started, "Ipamd-Started", _MOST_NS), spooled)


def _deadline_ms(headers: Mapping[str, str]) -> int | None:
    text = _header(headers, "Ipamd-Deadline-Ms")
    return None if not text else _number(text, "Ipamd-Deadline-Ms", _MOST_MS)


def _number(text: str, what: str, most: int) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or int(text) > most:
        raise CniError(BAD_ENVIRONMENT, f"{what} must be a whole number up to {most}, not {text[:32]!r}")
    return int(text)
