"""Owns the laws for a history of calls and the state that the members end with.

No address has two owners at any time; an acknowledged ADD is there, or was released by a call that was acknowledged or
not answered; a pod keeps its address; a read is not older than what was acknowledged before it began; all members end
with the same state; every address is one that the pool gives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address, ip_network
from itertools import pairwise
from math import inf
from typing import NamedTuple

from tests.support.follower import Follower, Sure
from tests.support.history import Call, History, Read, Shown, Verb


class Rules(NamedTuple):
    """What a pool gives: addresses of its subnet, but for the ends and what is forbidden."""

    subnet: str
    forbidden: frozenset[str] = frozenset()


Final = Mapping[str, Mapping[str, Shown]]
"""By member, who holds what in the end, by pod."""


def check(history: History, rules: Rules, final: Final | None = None) -> list[str]:
    """Every law that a history breaks, one sentence each."""
    followers = follow(history.calls)
    broken = [f"{one.pod}: {law}" for one in followers.values() for law in one.broken]
    broken += shared(sure for one in followers.values() for sure in one.held)
    reads = [*history.reads, *_last_looks(final or {})]
    broken += outside(history.calls, reads, rules)
    for read in reads:
        broken += doubles(read)
        broken += unexplained(read, followers)
    return broken + list(differences(final or {}))


def follow(calls: Iterable[Call]) -> dict[str, Follower]:
    """Each pod, followed to the end."""
    found: dict[str, Follower] = {}
    for call in sorted(calls, key=lambda one: one.called_s):
        found.setdefault(call.pod, Follower(call.pod)).take(call)
    for one in found.values():
        one.end()
    return found


def shared(held: Iterable[Sure]) -> Iterator[str]:
    """Sure holds of two pods on one address that overlap."""
    by_address: dict[str, list[Sure]] = defaultdict(list)
    for sure in held:
        by_address[sure.address].append(sure)
    for address, sures in by_address.items():
        sures.sort(key=lambda sure: (sure.first_s, sure.last_s))
        for one, other in pairwise(sures):
            if one.pod != other.pod and other.first_s < one.last_s:
                yield f"{address} was held by {one.pod} and {other.pod} at {other.first_s:.6f} s"


def outside(calls: Iterable[Call], reads: Iterable[Read], rules: Rules) -> Iterator[str]:
    """Addresses that the pool does not give."""
    network = ip_network(rules.subnet)
    ends = {network.network_address, network.broadcast_address}
    seen = {(call.pod, call.address) for call in calls if call.address and call.verb is not Verb.RELEASE}
    seen |= {(pod, shown.address) for read in reads for pod, shown in read.held.items()}
    for pod, text in sorted(seen):
        address = ip_address(text)
        if address not in network or address in ends or text in rules.forbidden:
            yield f"{pod}: has {text}, which the pool does not give"


def doubles(read: Read) -> Iterator[str]:
    """Addresses that two pods show in one read."""
    owners: dict[str, list[str]] = defaultdict(list)
    for pod, shown in read.held.items():
        owners[shown.address].append(pod)
    for address, pods in owners.items():
        if len(pods) > 1:
            yield f"{read.where} at {read.called_s:.6f} s shows {address} with {' and '.join(sorted(pods))}"


def unexplained(read: Read, followers: Mapping[str, Follower]) -> Iterator[str]:
    """Pods that a read shows as they were at no time while it was under way: too old, or what never was."""
    for pod in sorted({*followers, *read.held}):
        follower = followers.get(pod)
        if follower is None or not follower.explains(read):
            yield f"{read.where} at {read.called_s:.6f} s shows {pod} with {read.held.get(pod)}, which it had not then"


def differences(final: Final) -> Iterator[str]:
    """Members that end with another state than the first."""
    (first, expected), *others = final.items() or [("", {})]
    for member, held in others:
        for pod in sorted({*expected, *held}):
            if expected.get(pod) != held.get(pod):
                yield f"in the end {first} shows {pod} with {expected.get(pod)}, {member} with {held.get(pod)}"


def _last_looks(final: Final) -> list[Read]:
    return [Read(inf, inf, held, f"{member} in the end") for member, held in final.items()]
