"""Owns the laws for a history of calls that was interrupted by crashes.

A pod is followed through all that it may be in: an unanswered call was carried out or was not, and both are kept until
an answer tells them apart. An answer that none of them explains breaks a law.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from ipaddress import ip_address, ip_network
from itertools import pairwise
from math import inf
from typing import NamedTuple

from tests.kill.history import Call, Verb

ANY = "any"
"""The address of an ADD that was not answered, if it was carried out."""


class Hold(NamedTuple):
    """A pod holds an address through a container; (None, None): it holds nothing."""

    container: str | None
    address: str | None


NOTHING = Hold(None, None)


class Sure(NamedTuple):
    """From `first_s` to `last_s` a pod held an address whatever became of unanswered calls."""

    address: str
    first_s: float
    last_s: float
    pod: str


class Pod:
    """Follows one pod."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.may_be = {NOTHING}
        self.held: list[Sure] = []
        self.broken: list[str] = []
        self._since_s: float | None = None

    def take(self, call: Call) -> None:
        """The pod's next call."""
        self._close(call)
        {Verb.ADD: self._add, Verb.DEL: self._del, Verb.SEEN: self._seen}[call.verb](call)
        self._open(call.returned_s)

    def end(self) -> None:
        """The history is over: what is held is held for good."""
        self._finish(inf)

    def _add(self, call: Call) -> None:
        if not call.done:
            self.may_be |= {Hold(call.container, hold.address or ANY) for hold in self.may_be}
        elif call.address is None:
            self._keep(
                call, {hold for hold in self.may_be if hold == NOTHING}, "a pod that holds an address was refused"
            )
        else:
            self._keep(call, {hold for hold in self.may_be if fits(hold, call.address)}, "the pod got another address")
            self.may_be = {Hold(call.container, call.address)}

    def _del(self, call: Call) -> None:
        after = {NOTHING if hold.container == call.container else hold for hold in self.may_be}
        self.may_be = after if call.done else self.may_be | after

    def _seen(self, call: Call) -> None:
        seen = Hold(call.container, call.address)
        explained = {hold for hold in self.may_be if hold.container == seen.container and fits(hold, seen.address)}
        self._keep(call, explained, "the restarted server shows what no call explains")
        self.may_be = {seen}

    def _keep(self, call: Call, explained: set[Hold], law: str) -> None:
        if not explained:
            believed = ", ".join(sorted(f"{hold.container}={hold.address}" for hold in self.may_be))
            self.broken.append(f"{law}: {call} while it may hold: {believed}")
        self.may_be = explained or {NOTHING}

    def _open(self, now_s: float) -> None:
        if self._since_s is None and self._sure() is not None:
            self._since_s = now_s

    def _close(self, call: Call) -> None:
        """A DEL of the container that has it ends the sure hold when it is called."""
        if call.verb is Verb.DEL and any(hold.container == call.container for hold in self.may_be):
            self._finish(call.called_s)

    def _finish(self, now_s: float) -> None:
        address = self._sure()
        if self._since_s is not None and address is not None:
            self.held.append(Sure(address, self._since_s, now_s, self.name))
        self._since_s = None

    def _sure(self) -> str | None:
        """The address that the pod holds for sure."""
        addresses = {hold.address for hold in self.may_be}
        return addresses.pop() if len(addresses) == 1 and ANY not in addresses else None


def fits(hold: Hold, address: str | None) -> bool:
    """Whether what a pod may hold agrees with an address that the server named."""
    return hold == NOTHING or hold.address in (address, ANY)


def check(calls: Iterable[Call], subnet: str, forbidden: frozenset[str] = frozenset()) -> list[str]:
    """Every law that a history breaks, one sentence each. `forbidden`: addresses that must never be given."""
    pods: dict[str, Pod] = {}
    ordered = sorted(calls, key=lambda call: call.called_s)
    for call in ordered:
        pods.setdefault(call.pod, Pod(call.pod)).take(call)
    for pod in pods.values():
        pod.end()
    broken = [f"{pod.name}: {law}" for pod in pods.values() for law in pod.broken]
    return broken + list(shared(pods.values())) + list(outside(ordered, subnet, forbidden))


def shared(pods: Iterable[Pod]) -> Iterator[str]:
    """Sure holds of two pods on one address that overlap."""
    by_address: dict[str, list[Sure]] = defaultdict(list)
    for pod in pods:
        for sure in pod.held:
            by_address[sure.address].append(sure)
    for address, held in by_address.items():
        held.sort(key=lambda sure: sure.first_s)
        for one, other in pairwise(held):
            if one.pod != other.pod and other.first_s < one.last_s:
                yield f"{address} was held by {one.pod} and {other.pod} at {other.first_s:.6f} s"


def outside(calls: Iterable[Call], subnet: str, forbidden: frozenset[str]) -> Iterator[str]:
    """Addresses that the pool does not give."""
    network = ip_network(subnet)
    ends = {network.network_address, network.broadcast_address}
    for call in calls:
        address = ip_address(call.address) if call.address else None
        if address is not None and (address not in network or address in ends or call.address in forbidden):
            yield f"{call.pod}: got {call.address}, which the pool does not give"


def doubles(shown: Iterable[tuple[str, str]]) -> list[str]:
    """Addresses that two pods show at one moment; `shown` are pairs of pod and address."""
    owners: dict[str, list[str]] = defaultdict(list)
    for pod, address in shown:
        owners[address].append(pod)
    return [f"{address} is held by {' and '.join(pods)}" for address, pods in owners.items() if len(pods) > 1]
