"""Owns the rules between settings, and what a setting is when nobody gave it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from ipamd.settings.kinds import NAME, Endpoint, Peer


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
    """The sentences of all broken rules of a server."""
    return [sentence for rule in _RULES for sentence in rule(given, host)]


def mistakes_of_agent(given: Named, host: Host) -> list[str]:
    """The sentences of all broken rules of an agent."""
    found = [] if "node-name" in given.values or "node-name" in given.unread else _host_as_node(host)
    if "server" not in given.values and "server" not in given.unread:
        found.append("server: must be given, once for each server (--server https://HOST:7480)")
    if "enrol-file" in given.values and "token-file" not in given.values and "token-file" not in given.unread:
        found.append(f"{given.text('enrol-file')}: needs --token-file, where the token that is fetched is kept")
    return found


def _host_as_node(host: Host) -> list[str]:
    """An agent has no other name than its node's."""
    if host.is_container:
        return ["node-name: must be given (--node-name NAME) inside a container, whose host name changes"]
    if host.name.startswith("localhost"):
        return [f"node-name: must be given, because {host.name!r} tells no host from another"]
    return [mistake.replace("member-name", "node-name", 1) for mistake in _host_name(host)]


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
    if {"insecure", *_TLS} & given.unread or given.values.get("insecure") or "tls-cert" in given.values:
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
    """Elections that start within the same moment split the vote: the times need room between them.

    A leader is missed after three heartbeats at the soonest, and believes in itself as long as others could.
    """
    del host
    values = given.values
    least, most = values.get("raft-min-timeout-ms"), values.get("raft-max-timeout-ms")
    heartbeat, fallback = values.get("raft-heartbeat-ms"), values.get("raft-fallback-ms")
    found = []
    if least is not None and most is not None and most * 2 < least * 3:
        shortest, longest = given.text("raft-min-timeout-ms"), given.text("raft-max-timeout-ms")
        found.append(f"{longest}: must be at least one and a half times {shortest}")
    if heartbeat is not None and least is not None and heartbeat * 3 > least:
        found.append(
            f"{given.text('raft-heartbeat-ms')}: must be at most a third of {given.text('raft-min-timeout-ms')}"
        )
    if fallback is not None and least is not None and fallback < least:
        found.append(f"{given.text('raft-fallback-ms')}: must not be below {given.text('raft-min-timeout-ms')}")
    return found


def _certificates(given: Named, host: Host) -> list[str]:
    """All three or none."""
    del host
    there = [name for name in _TLS if name in given.values]
    missing = [name for name in _TLS if name not in there]
    if {*_TLS} & given.unread or not (there and missing):
        return []
    return [f"{name}: must be given too, with {given.text(there[0])}" for name in missing]


def _several(given: Named, host: Host) -> list[str]:
    """What a new cluster of several, or a member that joins one, must be told."""
    found = []
    peers: tuple[Peer, ...] = given.values.get("peer", ())
    for what, kind in (("name", 0), ("Raft address", 1), ("URL", 2)):
        values = [peer[kind] for peer in peers]
        twice = next((value for value in values if values.count(value) > 1), None)
        found += [] if twice is None else [f"peer: two of them have the {what} {twice}"]
    if "join" in given.values and peers:
        found.append(
            f"{given.text('join')}: goes with an existing cluster, and --peer with a new one: give one of them"
        )
    if "join" in given.values and not {"token-file", "insecure"} & (given.unread | {*_true(given)}):
        found.append(f"{given.text('join')}: needs --token-file with a token of role admin")
    scheme = "https" if "tls-cert" in given.values else "http"
    wrong = next((peer.url for peer in peers if not peer.url.startswith(f"{scheme}://")), None)
    if wrong is not None and not {*_TLS} & given.unread:
        found.append(f"peer: the URL {wrong} does not begin with {scheme}://, as {_WHY_SCHEME[scheme]}")
    return found + _unprotected(given, host)


def _true(given: Named) -> list[str]:
    return [name for name, value in given.values.items() if value]


def _unprotected(given: Named, host: Host) -> list[str]:
    """Without TLS peers must be on this host, and --insecure must say so."""
    del host
    wants = [name for name in ("peer", "join") if name in given.values]
    if not wants or {"insecure", "raft-listen", *_TLS} & given.unread or "tls-cert" in given.values:
        return []
    peers: tuple[Peer, ...] = given.values.get("peer", ())
    raft = [given.values["raft-listen"], *(peer.raft for peer in peers)]
    beyond = next((str(endpoint) for endpoint in raft if not endpoint.is_loopback), None)
    if beyond is not None:
        return [f"{wants[0]}: other members need TLS (--tls-cert, --tls-key, --tls-ca), as {beyond} is not loopback"]
    if not given.values.get("insecure"):
        return [f"{wants[0]}: other members need TLS (--tls-cert, --tls-key, --tls-ca); on loopback --insecure will do"]
    return []


def own_peer(values: Mapping[str, Any], member: str) -> Peer | None:
    """The entry of this member among the peers."""
    return next((peer for peer in values.get("peer", ()) if peer.name == member), None)


def completed(values: Mapping[str, Any], host: Host) -> dict[str, Any]:
    """The values with those that follow from others filled in."""
    member = values.get("member-name", host.name)
    listen, raft = _reachable(values["listen"], host), _reachable(values["raft-listen"], host)
    own, scheme = own_peer(values, member), "https" if "tls-cert" in values else "http"
    follow = {
        "member-name": member,
        "node-name": member,
        "advertise-url": own.url if own else f"{scheme}://{listen}",
        "advertise-raft": own.raft if own else raft,
        "raft-fallback-ms": values["raft-max-timeout-ms"],
        "spool-dir": values["data-dir"] / "spool",
    }
    return {**follow, **values}


def completed_agent(values: Mapping[str, Any], host: Host) -> dict[str, Any]:
    """The same for an agent."""
    return {"node-name": host.name, **values}


_TLS = ("tls-cert", "tls-key", "tls-ca")
_WHY_SCHEME = {"https": "all members have certificates", "http": "this member has no certificate"}
_RULES = (_names, _exposure, _ports, _timeouts, _certificates, _several)


def _reachable(endpoint: Endpoint, host: Host) -> Endpoint:
    return Endpoint(host.name, endpoint.port) if endpoint.is_wildcard else endpoint
