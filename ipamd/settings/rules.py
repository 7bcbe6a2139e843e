"""Owns the rules between settings, and what a setting is when nobody gave it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from ipamd.settings.kinds import NAME, Endpoint


class Host(NamedTuple):
    """What the operating system says: the host's name, and whether this is a container."""

    name: str
    is_container: bool


class Named(NamedTuple):
    """Values by name, the names of those that could not be read, and how to name one in a sentence."""

    values: Mapping[str, Any]
    unread: AbstractSet[str]
    text: Callable[[str], str]


def mistakes_between(given: Named, host: Host) -> list[str]:
    """The sentences of all broken rules."""
    return [sentence for rule in (_names, _exposure, _ports, _timeouts) for sentence in rule(given, host)]


def _names(given: Named, host: Host) -> list[str]:
    """A name that changes by itself would part a node from its pods, so it has to be chosen."""
    if {"member-name", "node-name"} & given.unread:
        return []
    member, node = given.values.get("member-name"), given.values.get("node-name")
    if node is None and member is None and host.is_container:
        return ["node-name: must be given (--node-name NAME) inside a container, whose host name changes"]
    if node is None and (member or host.name).startswith("localhost"):
        return [f"node-name: must be given, because {member or host.name!r} tells no host from another"]
    return [] if member is not None else _host_name(host)


def _host_name(host: Host) -> list[str]:
    try:
        NAME.read(host.name)
    except ValueError as problem:
        return [f"member-name: must be given, because the host's name {host.name!r} {problem}"]
    return []


def _exposure(given: Named, host: Host) -> list[str]:
    del host
    if "insecure" in given.unread or given.values.get("insecure"):
        return []
    return [
        f"{given.text(name)}: is not a loopback address; without TLS that needs --insecure, which switches tokens off"
        for name in ("listen", "raft-listen")
        if (endpoint := given.values.get(name)) is not None and not endpoint.is_loopback
    ]


def _ports(given: Named, host: Host) -> list[str]:
    del host
    listen, raft = given.values.get("listen"), given.values.get("raft-listen")
    if listen is None or listen != raft or listen.port == 0:
        return []
    return [f"{given.text('raft-listen')}: must differ from {given.text('listen')}"]


def _timeouts(given: Named, host: Host) -> list[str]:
    """Elections that start within the same moment split the vote: the times need room between them."""
    del host
    least, most = given.values.get("raft-min-timeout-ms"), given.values.get("raft-max-timeout-ms")
    if least is None or most is None or most * 2 >= least * 3:
        return []
    shortest, longest = given.text("raft-min-timeout-ms"), given.text("raft-max-timeout-ms")
    return [f"{longest}: must be at least one and a half times {shortest}"]


def completed(values: Mapping[str, Any], host: Host) -> dict[str, Any]:
    """The values with those that follow from others filled in."""
    member = values.get("member-name", host.name)
    listen, raft = _reachable(values["listen"], host), _reachable(values["raft-listen"], host)
    follow = {
        "member-name": member,
        "node-name": member,
        "advertise-url": f"http://{listen}",
        "advertise-raft": raft,
    }
    return {**follow, **values}


def _reachable(endpoint: Endpoint, host: Host) -> Endpoint:
    return Endpoint(host.name, endpoint.port) if endpoint.is_wildcard else endpoint
