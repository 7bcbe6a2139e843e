"""Owns the memory of the CNI calls that this process answered: the last ones, for people, and counts of all."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from ipamd.core.figures import Histogram
from ipamd.service.request import Page, page_of

_KEPT = 1000


class CallRecord(NamedTuple):
    """One CNI call. `code` 0: it succeeded, else `msg` says why not; `spooled`: it was put aside.

    `pod_ref` None: it names none. `took_ms` is the time that this process spent.
    """

    at_ms: int
    verb: str
    node: str
    pod_ref: str | None
    pools: tuple[str, ...]
    container_id: str | None
    ifname: str | None
    code: int
    took_ms: float
    request_id: str
    spooled: bool = False
    msg: str = ""

    def is_of(self, pod_ref: str) -> bool:
        """Whether it is for a pod, named with the prefix of its cluster or without."""
        return self.pod_ref is not None and (self.pod_ref == pod_ref or self.pod_ref.endswith(f":{pod_ref}"))


class NumberedCall(NamedTuple):
    """A call with its place among all that this process answered, from 1."""

    number: int
    record: CallRecord


class Calls:
    """A ring of the last 1,000 calls, and how many there were since the start."""

    def __init__(self) -> None:
        self._ring: deque[CallRecord] = deque(maxlen=_KEPT)
        self._noted = 0
        self.by_code: dict[tuple[str, int], int] = {}
        """How many, by verb and code."""

        self.times: dict[str, Histogram] = {}
        """How long they took, by verb."""

        self.spooled = 0
        """How many were put aside."""

    def note(self, record: CallRecord) -> None:
        """Remember a call; the oldest is forgotten."""
        self._ring.append(record)
        self._noted += 1
        key = (record.verb, record.code)
        self.by_code[key] = self.by_code.get(key, 0) + 1
        times = self.times.get(record.verb)
        if times is None:
            times = self.times[record.verb] = Histogram()
        times.note(record.took_ms / 1000)
        self.spooled += record.spooled

    def page(self, before: int | None, limit: int, pod_ref: str | None = None) -> Page[NumberedCall]:
        """Up to `limit` of those that are remembered with numbers below `before` (None: of all), newest first.

        `pod_ref`: only those for this pod.
        """
        numbered = map(NumberedCall, range(self._noted, 0, -1), reversed(self._ring))
        found = [one for one in numbered if before is None or one.number < before]
        return page_of([one for one in found if pod_ref is None or one.record.is_of(pod_ref)], limit)
