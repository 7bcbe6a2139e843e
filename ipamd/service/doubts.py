"""Owns what is said of bound addresses that may be given back: whose they are, and the command that helps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ipamd.core.ports import Doubt

MOST: Final = 3
"""So many nodes are named; the others are counted."""

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def helps(doubts: Sequence[Doubt], family: int, now_ms: int) -> Iterator[str]:
    """One clause for each node that may give addresses back, those with most of them first."""
    mine = sorted((one for one in doubts if one.family == family), key=lambda one: (-one.lost - one.suspect, one.node))
    for one in mine[:MOST]:
        if one.lost:
            yield (
                f"{one.lost} {_belong(one.lost)} to lost node {one.node} (silent {_ago(one.silent_since_ms, now_ms)}):"
                f" ipamctl node release {one.node}"
            )
        else:
            yield (
                f"{one.suspect} {_belong(one.suspect)} to node {one.node}, which has rebooted since, and"
                f" {'is' if one.suspect == 1 else 'are'} suspect: ipamctl node release {one.node} --suspect"
            )
    rest = mine[MOST:]
    if rest:
        count = sum(one.lost + one.suspect for one in rest)
        yield f"{count} more {_belong(count)} to {len(rest)} other lost or rebooted nodes: ipamctl node list"


def shares(doubts: Sequence[Doubt], family: int) -> Iterator[str]:
    """What of a pool's bound addresses is in doubt, as one clause; none where nothing is."""
    suspect, lost = total(doubts, family)
    told = [f"{number} {what}" for number, what in ((suspect, "suspect"), (lost, "lost")) if number]
    if told:
        yield f"of all that is bound {' and '.join(told)}"


def total(doubts: Sequence[Doubt], family: int) -> tuple[int, int]:
    """How many addresses of a family are suspect, and how many lost."""
    mine = [one for one in doubts if one.family == family]
    return sum(one.suspect for one in mine), sum(one.lost for one in mine)


def _belong(count: int) -> str:
    return "belongs" if count == 1 else "belong"


def _ago(since_ms: int | None, now_ms: int) -> str:
    """How long ago, in the largest unit that makes at least one."""
    passed_s = 0 if since_ms is None else max(0, now_ms - since_ms) // 1000
    return next((f"{passed_s // size_s} {unit}" for size_s, unit in _UNITS if passed_s >= size_s), "0 s")
