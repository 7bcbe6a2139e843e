"""Owns following one pod through a history: all that it may be in, for a call without an answer leaves several states.

An answer that none of them explains breaks a law. What is sure whatever became of unanswered calls is kept as
intervals, for the laws between pods.
"""

from __future__ import annotations

from bisect import bisect_right
from math import inf
from typing import NamedTuple

from tests.support.history import Call, Read, Shown, Verb

ANY = "any"
"""The address of an ADD that was not answered, if it was carried out."""


class Hold(NamedTuple):
    """A pod holds an address through a container whose ADD started at `start_s`; all None: it holds nothing."""

    container: str | None
    address: str | None
    start_s: float = 0.0


NOTHING = Hold(None, None)
Holds = frozenset[Hold]


class Sure(NamedTuple):
    """From `first_s` to `last_s` a pod held an address whatever became of unanswered calls."""

    address: str
    first_s: float
    last_s: float
    pod: str


def carry_out(call: Call, hold: Hold, address: str | None = None) -> Hold:
    """What a pod holds after a call, if it held `hold` before."""
    if call.verb is Verb.ADD:
        if hold == NOTHING:
            return Hold(call.container, address or ANY, call.start_s)
        if call.start_s < hold.start_s:  # it is older than the binding that is there
            return hold
        return Hold(call.container, address or hold.address, call.start_s)
    if hold.container != call.container:
        return hold
    if call.verb is Verb.DEL:
        return NOTHING if hold.start_s <= call.start_s else hold
    return NOTHING if hold.start_s == call.start_s else hold


def fits(hold: Hold, address: str | None) -> bool:
    """Whether what a pod may hold agrees with an address that was named."""
    return hold == NOTHING or hold.address in (address, ANY)


class Follower:
    """Follows one pod."""

    def __init__(self, pod: str) -> None:
        self.pod = pod
        self.held: list[Sure] = []
        self.broken: list[str] = []
        self._may_be: Holds = frozenset({NOTHING})
        self._pending: list[Call] = []
        self._moments: list[float] = [-inf]
        self._states: list[Holds] = [self._may_be]
        self._since_s: float | None = None
        self._address: str | None = None

    def take(self, call: Call) -> None:
        """The pod's next call."""
        if not call.done:
            self._pending.append(call)
            self._become(call.called_s, self._with_pending(self._may_be))
            return
        before = self._may_be
        if call.verb is not Verb.SEEN:
            under_way = {carry_out(call, hold, call.address) for hold in before}
            self._become(call.called_s, self._with_pending(before | under_way))
        after = {Verb.ADD: self._add, Verb.DEL: self._del, Verb.RELEASE: self._release, Verb.SEEN: self._seen}
        self._become(call.returned_s, self._with_pending(after[call.verb](call, before)))

    def end(self) -> None:
        """The history is over: what is held is held for good."""
        self._finish(inf)

    def explains(self, read: Read) -> bool:
        """Whether what a read shows of this pod was so at some time between its call and its return."""
        shown = read.held.get(self.pod)
        first = bisect_right(self._moments, read.called_s) - 1
        last = bisect_right(self._moments, read.returned_s)
        return any(_is_shown(hold, shown) for holds in self._states[first:last] for hold in holds)

    def _add(self, call: Call, before: Holds) -> Holds:
        if call.address is None:
            return self._keep(call, {hold for hold in before if hold == NOTHING}, "a pod that holds was refused")
        kept = self._keep(call, {hold for hold in before if fits(hold, call.address)}, "the pod got another address")
        return frozenset(carry_out(call, hold, call.address)._replace(address=call.address) for hold in kept)

    def _del(self, call: Call, before: Holds) -> Holds:
        self._pending = [one for one in self._pending if one.container != call.container or one.start_s > call.start_s]
        return frozenset(carry_out(call, hold) for hold in before)

    def _release(self, call: Call, before: Holds) -> Holds:
        if call.address is None:
            return before
        meant = {hold for hold in before if carry_out(call, hold) == NOTHING and fits(hold, call.address)}
        self._keep(call, meant - {NOTHING}, "a release that was not current freed an address")
        return frozenset({NOTHING})

    def _seen(self, call: Call, before: Holds) -> Holds:
        """Nothing is under way: what was not carried out by now never will be."""
        self._pending.clear()
        shown = None if call.address is None else Shown(call.container, call.address)
        kept = self._keep(call, {hold for hold in before if _is_shown(hold, shown)}, "no call explains what is shown")
        return frozenset(hold if hold == NOTHING else hold._replace(address=call.address) for hold in kept)

    def _keep(self, call: Call, explained: set[Hold], law: str) -> Holds:
        if not explained:
            believed = ", ".join(sorted(f"{hold.container}={hold.address}" for hold in self._may_be))
            self.broken.append(f"{law}: {call} while it may hold: {believed}")
        return frozenset(explained or {NOTHING})

    def _with_pending(self, holds: Holds | set[Hold]) -> Holds:
        """Calls that were not answered may be carried out now, in any order."""
        found, new = set(holds), set(holds)
        while new:
            new = {carry_out(call, hold) for call in self._pending for hold in new} - found
            found |= new
        return frozenset(found)

    def _become(self, now_s: float, holds: Holds) -> None:
        self._may_be = holds
        self._moments.append(now_s)
        self._states.append(holds)
        addresses = {hold.address for hold in holds}
        (sure,) = addresses if len(addresses) == 1 else (None,)
        if self._since_s is not None:
            self._finish(now_s, unless=sure)
        if self._since_s is None and sure not in (None, ANY):
            self._since_s = now_s
            self._address = sure

    def _finish(self, now_s: float, unless: str | None = None) -> None:
        if self._since_s is not None and self._address is not None and self._address != unless:
            self.held.append(Sure(self._address, self._since_s, now_s, self.pod))
            self._since_s = None


def _is_shown(hold: Hold, shown: Shown | None) -> bool:
    if shown is None or hold == NOTHING:
        return shown is None and hold == NOTHING
    return hold.container == shown.container and hold.address in (shown.address, ANY)
