"""Owns the lists of attachments in a configuration: those that GC must keep, and the addresses that CHECK compares."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from ipamd.cni import config
from ipamd.cni.config import Json
from ipamd.cni.errors import BAD_CONFIG, CniError
from ipamd.core.addresses import Address, AddressError, parse_host

_LISTS = ("cni.dev/valid-attachments", "cni.dev/attachments")
"""The name in version 1.1.0 of the specification, and the one of its drafts, which runtimes sent."""


def read_valid(conf: Json) -> frozenset[tuple[str, str]]:
    """The attachments (container id, ifname) that GC must keep: the union of both lists. Raises CniError."""
    given = [key for key in _LISTS if key in conf]
    if not given:
        raise CniError(BAD_CONFIG, f"GC without {_LISTS[0]} cannot know what to keep")
    return frozenset(pair for key in given for pair in _attachments(conf[key], key))


def read_previous(conf: Json) -> frozenset[Address]:
    """The addresses of prevResult. Raises CniError."""
    if conf.get("prevResult") is None:
        raise CniError(BAD_CONFIG, "CHECK without prevResult has nothing to compare with")
    previous = config.mapping(conf["prevResult"], "prevResult")
    ips = config.sequence(previous.get("ips"), "prevResult.ips")
    return frozenset(_address(item, f"prevResult.ips[{i}]") for i, item in enumerate(ips))


def _attachments(value: object, where: str) -> Iterator[tuple[str, str]]:
    for i, item in enumerate(config.sequence(value, where)):
        pair = config.mapping(item, f"{where}[{i}]")
        yield (
            config.text(pair.get("containerID"), f"{where}[{i}].containerID"),
            config.text(pair.get("ifname"), f"{where}[{i}].ifname"),
        )


def _address(value: object, where: str) -> Address:
    item = config.mapping(value, where)
    try:
        return parse_host(config.text(item.get("address"), f"{where}.address"))
    except AddressError as error:
        raise CniError(BAD_CONFIG, f"{where}.address: {error}") from None


def with_valid(body: bytes, more: Iterable[tuple[str, str]]) -> bytes:
    """A configuration of a GC call with more attachments (container id, ifname) that it must keep. Raises CniError."""
    conf = config.decode(body, strict=True)
    read_valid(conf)
    key = next(key for key in _LISTS if key in conf)
    added = [{"containerID": container_id, "ifname": ifname} for container_id, ifname in more]
    return json.dumps({**conf, key: [*config.sequence(conf[key], key), *added]}).encode()
