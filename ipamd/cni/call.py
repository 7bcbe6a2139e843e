"""Owns a CNI call: from verb, headers and body to one value that says all the use cases need, or a CniError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from ipamd.cni import config, environment
from ipamd.cni.args import PodArgs, parse_args
from ipamd.cni.attachments import read_previous, read_valid
from ipamd.cni.config import Json
from ipamd.cni.dialects import read_ipam
from ipamd.cni.dialects.ipam import Ipam
from ipamd.cni.environment import Caller, read_caller, read_sandbox
from ipamd.cni.errors import CniError
from ipamd.cni.overrides import Overrides
from ipamd.cni.requested import annotated_requests, read_annotations, requested_addresses
from ipamd.cni.resolv import handed_dns
from ipamd.cni.result import check_room
from ipamd.cni.versions import ONE_OF_FAMILY, check_version
from ipamd.core.addresses import Address
from ipamd.core.commands import CallStart, PoolRequest
from ipamd.core.model import Dns
from ipamd.core.names import InvalidName, check_container_id, container_pod_ref, with_cluster

VERBS = ("add", "del", "check", "gc", "status")

_REMEMBERED = 512
_SHORT_BYTES = 16 * 1024
"""Longer configurations are not remembered: what is takes a few MiB at most."""


@dataclass(frozen=True, slots=True)
class Call:
    """What all calls have. `node` is the whole name, cluster and all.

    `start` is None for a caller that does not say when it started; `deadline_ms` is the time that the caller has
    left, None where it does not say.
    """

    version: str
    cni_network: str
    node: str
    start: CallStart | None
    deadline_ms: int | None


@dataclass(frozen=True, slots=True)
class AddCall(Call):
    """Give the interface of a container its addresses in each of the pools: all or nothing."""

    container_id: str
    ifname: str
    netns: str
    pod_ref: str
    pod_uid: str | None
    requests: tuple[PoolRequest, ...]
    addresses: tuple[Address, ...]
    overrides: Overrides
    resolv_conf: str | None
    dialect: str
    warnings: tuple[str, ...]
    netns_inode: int | None = None
    """What the agent that answered the plugin saw at `netns`."""

    dns: Dns | None = None
    """What the agent that answered the plugin read in `resolv_conf`."""

    @property
    def pools(self) -> tuple[str, ...]:
        """The names of the pools; of an inline one that which it is made under."""
        return names_of(self.requests)

    @property
    def one_of_family(self) -> bool:
        """Whether a result of this version has room for one address of each family only (`result.check_room`)."""
        return self.version in ONE_OF_FAMILY


@dataclass(frozen=True, slots=True)
class DelCall(Call):
    """Let go what the interface of a container holds."""

    container_id: str
    ifname: str


@dataclass(frozen=True, slots=True)
class CheckCall(Call):
    """Say whether the interface holds an address in each of the pools, and all that it holds is in `previous`."""

    container_id: str
    ifname: str
    netns: str
    requests: tuple[PoolRequest, ...]
    previous: frozenset[Address]

    @property
    def pools(self) -> tuple[str, ...]:
        """The names of the pools."""
        return names_of(self.requests)


@dataclass(frozen=True, slots=True)
class GcCall(Call):
    """Free what this node holds in this CNI network beside the attachments (container id, ifname) of `valid`."""

    valid: frozenset[tuple[str, str]]
    looked: int | None = None
    """Up to which log index the agent that answered the plugin has looked for more that live."""


@dataclass(frozen=True, slots=True)
class StatusCall(Call):
    """Say whether an ADD in these pools could be served."""

    requests: tuple[PoolRequest, ...]

    @property
    def pools(self) -> tuple[str, ...]:
        """The names of the pools."""
        return names_of(self.requests)


AnyCall = AddCall | DelCall | CheckCall | GcCall | StatusCall


def names_of(requests: tuple[PoolRequest, ...]) -> tuple[str, ...]:
    """The pools of some requests by name."""
    return tuple(request.pool for request in requests)


def parse(verb: str, headers: Mapping[str, str], body: bytes, *, node: str, cluster: str | None) -> AnyCall:
    """Read a call of one of VERBS. `headers` finds a name in any case, as HTTP libraries do.

    `node` and `cluster` are those of the server that answers; the caller's own headers come first. Raises CniError,
    with the version that its error object must have.
    """
    try:
        return _READERS[verb](_Request(verb, headers, body, read_caller(headers, node, cluster)))
    except CniError as error:
        error.version = config.version_of(body)
        raise


def named_node(headers: Mapping[str, str], *, node: str, cluster: str | None) -> str | None:
    """The whole name of the node that a call is of, whatever else is wrong with it; None: that cannot be read."""
    try:
        return read_caller(headers, node, cluster).node
    except CniError:
        return None


def named_pod(headers: Mapping[str, str], *, node: str, cluster: str | None) -> str | None:
    """The pod that a call is about, whatever else is wrong with it; None: it says none, or nothing that can be read."""
    try:
        caller = read_caller(headers, node, cluster)
        args = parse_args(environment.variable(headers, environment.ARGS) or "")
        if args.pod_ref is not None:
            return with_cluster(caller.cluster, args.pod_ref)
        container_id = check_container_id(environment.variable(headers, environment.CONTAINER_ID) or "", "container id")
    except (CniError, InvalidName):
        return None
    return _pod_ref(args, caller, container_id)


@dataclass(frozen=True, slots=True)
class _Request:
    verb: str
    headers: Mapping[str, str]
    body: bytes
    caller: Caller


class _Base(NamedTuple):
    """The fields of Call, in their order."""

    version: str
    cni_network: str
    node: str
    start: CallStart | None
    deadline_ms: int | None


class _Conf:
    """A configuration, of which nobody changes anything."""

    def __init__(self, body: bytes, verb: str) -> None:
        """Checked in the order of the reference implementation. Raises CniError."""
        self.json: Json = config.decode(body, strict=verb != "del")
        self.network = config.read_network(self.json)
        self.version = check_version(self.json.get("cniVersion"), verb)

    @cached_property
    def ipam(self) -> Ipam:
        """Its `ipam` section. Raises CniError."""
        return read_ipam(self.json)


_remembered = lru_cache(_REMEMBERED)(_Conf)


def _open(request: _Request) -> tuple[_Conf, _Base]:
    """The configuration, and what all calls have. A node sends few configurations, thousands of times each."""
    body, caller = request.body, request.caller
    conf = (_remembered if len(body) <= _SHORT_BYTES else _Conf)(body, request.verb)
    return conf, _Base(conf.version, conf.network, caller.node, caller.start, caller.deadline_ms)


def _add(request: _Request) -> AddCall:
    sandbox = read_sandbox(request.verb, request.headers)
    conf, base = _open(request)
    ipam = conf.ipam
    args = parse_args(environment.variable(request.headers, environment.ARGS) or "")
    annotations = read_annotations(conf.json) if ipam.pod_annotations else {}
    call = AddCall(
        *base,
        container_id=sandbox.container_id,
        ifname=sandbox.ifname,
        netns=sandbox.netns,
        pod_ref=_pod_ref(args, request.caller, sandbox.container_id),
        pod_uid=args.pod_uid,
        requests=annotated_requests(ipam.requests, annotations),
        addresses=requested_addresses(conf.json, args.ip, annotations, sandbox.ifname),
        overrides=ipam.overrides,
        resolv_conf=ipam.resolv_conf,
        dialect=ipam.dialect,
        warnings=ipam.warnings,
        netns_inode=environment.netns_inode(request.headers),
        dns=handed_dns(request.headers),
    )
    inline = [request.inline.family for request in call.requests if request.inline is not None]
    check_room(call.version, [*inline, *(static.address.family for static in call.overrides.addresses)])
    return call


def _pod_ref(args: PodArgs, caller: Caller, container_id: str) -> str:
    return with_cluster(caller.cluster, args.pod_ref or container_pod_ref(caller.local_node, container_id))


def _del(request: _Request) -> DelCall:
    """Nothing is read that DEL can do without: what cannot be read must not keep an address for ever."""
    sandbox = read_sandbox(request.verb, request.headers)
    _, base = _open(request)
    return DelCall(*base, container_id=sandbox.container_id, ifname=sandbox.ifname)


def _check(request: _Request) -> CheckCall:
    sandbox = read_sandbox(request.verb, request.headers)
    conf, base = _open(request)
    return CheckCall(
        *base,
        container_id=sandbox.container_id,
        ifname=sandbox.ifname,
        netns=sandbox.netns,
        requests=_requests(conf),
        previous=read_previous(conf.json),
    )


def _gc(request: _Request) -> GcCall:
    conf, base = _open(request)
    return GcCall(*base, valid=read_valid(conf.json), looked=environment.looked(request.headers))


def _status(request: _Request) -> StatusCall:
    conf, base = _open(request)
    return StatusCall(*base, requests=_requests(conf))


def _requests(conf: _Conf) -> tuple[PoolRequest, ...]:
    ipam = conf.ipam
    return annotated_requests(ipam.requests, read_annotations(conf.json) if ipam.pod_annotations else {})


_READERS: dict[str, Callable[[_Request], AnyCall]] = {
    "add": _add,
    "del": _del,
    "check": _check,
    "gc": _gc,
    "status": _status,
}
