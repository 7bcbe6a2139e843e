"""Owns the order of the ways in which a caller asks for addresses or a pool: the strongest way counts alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ipamd.cni import config
from ipamd.cni.config import Json
from ipamd.cni.errors import BAD_CONFIG, BAD_ENVIRONMENT, CniError
from ipamd.core.addresses import Address, AddressError, parse_host
from ipamd.core.commands import PoolRequest
from ipamd.core.names import InvalidName, check_name
from ipamd.core.values import replace

ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
POOL_ANNOTATION = "ipamd.io/pool"
ADDRESS_ANNOTATION = "ipamd.io/addresses.{}"
"""For one interface: its name goes where the braces are."""


def requested_addresses(conf: Json, ip: str, annotations: Mapping[str, object], ifname: str) -> tuple[Address, ...]:
    """The addresses asked for: runtimeConfig.ips, args.cni.ips, IP in CNI_ARGS, the pod's annotation; or none."""
    runtime = config.mapping(conf.get("runtimeConfig"), "runtimeConfig")
    if ips := config.texts(runtime.get("ips"), "runtimeConfig.ips"):
        return _addresses(ips, BAD_CONFIG, "runtimeConfig.ips")
    cni = config.mapping(config.mapping(conf.get("args"), "args").get("cni"), "args.cni")
    if ips := config.texts(cni.get("ips"), "args.cni.ips"):
        return _addresses(ips, BAD_CONFIG, "args.cni.ips")
    if ip:
        return _addresses(ip.split(","), BAD_ENVIRONMENT, "IP in CNI_ARGS")
    key = ADDRESS_ANNOTATION.format(ifname)
    if asked := annotations.get(key):
        return _addresses(config.text(asked, key).split(","), BAD_CONFIG, f"pod annotation {key}")
    return ()


def read_annotations(conf: Json) -> Json:
    """The pod's annotations, as the runtime hands them over. Raises CniError."""
    runtime = config.mapping(conf.get("runtimeConfig"), "runtimeConfig")
    return config.mapping(runtime.get(ANNOTATIONS), f"runtimeConfig[{ANNOTATIONS!r}]")


def annotated_requests(requests: tuple[PoolRequest, ...], annotations: Mapping[str, object]) -> tuple[PoolRequest, ...]:
    """What is asked of which pools; a pod's annotation wins over a single pool that is named. Raises CniError."""
    asked = annotations.get(POOL_ANNOTATION)
    if not asked or len(requests) != 1 or requests[0].inline is not None:
        return requests
    try:
        name = check_name(config.text(asked, POOL_ANNOTATION), f"pod annotation {POOL_ANNOTATION}")
    except InvalidName as error:
        raise CniError(BAD_CONFIG, str(error)) from None
    return (replace(requests[0], pool=name),)


def _addresses(items: Iterable[str], code: int, where: str) -> tuple[Address, ...]:
    """In the order given, each once. A prefix length is checked and ignored."""
    try:
        return tuple(dict.fromkeys(parse_host(item.strip()) for item in items))
    except AddressError as error:
        raise CniError(code, f"{where}: {error}") from None
