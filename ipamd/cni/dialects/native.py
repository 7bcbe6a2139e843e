"""Owns the native dialect: `{"type": "ipamd", "pool": NAME or [NAME, ...]}`."""

from __future__ import annotations

from ipamd.cni import config
from ipamd.cni.config import Json
from ipamd.cni.dialects.inline import MAX_POOLS, takes_first_host
from ipamd.cni.dialects.ipam import Ipam
from ipamd.cni.errors import BAD_CONFIG, CniError
from ipamd.cni.overrides import read_overrides
from ipamd.core.commands import PoolRequest
from ipamd.core.names import InvalidName, check_name

NAME = "native"


def read(conf: Json, ipam: Json) -> Ipam:
    """Read an `ipam` section that names its pools. Raises CniError with code 7."""
    spare = takes_first_host(conf)
    return Ipam(
        NAME,
        tuple(PoolRequest(name, spare_first_hosts=spare) for name in _pools(ipam.get("pool"))),
        read_overrides(ipam),
        config.flag(ipam.get("pod_annotations"), "ipam.pod_annotations"),
    )


def _pools(value: object) -> tuple[str, ...]:
    if value is None or value in ("", []):
        raise CniError(BAD_CONFIG, "ipam names no pool: its key pool is missing or empty, and it has no ranges")
    names = config.texts(value, "ipam.pool") if isinstance(value, list) else (_one(value),)
    if len(names) > MAX_POOLS:
        raise CniError(BAD_CONFIG, f"ipam.pool names {len(names)} pools, at most {MAX_POOLS} are allowed")
    try:
        for name in names:
            check_name(name, "ipam.pool")
    except InvalidName as error:
        raise CniError(BAD_CONFIG, str(error)) from None
    if len(set(names)) < len(names):
        raise CniError(BAD_CONFIG, "ipam.pool names one pool twice")
    return names


def _one(value: object) -> str:
    return value if isinstance(value, str) else config.wrong("ipam.pool", "a string or a list of strings", value)
