"""Owns the seeds that once broke a law: what they showed, and what the cure was. They are run for ever.

A seed repeats its run only as long as the simulation draws the same chances; what it showed has a test of its own
beside the part that was cured.
"""

from __future__ import annotations

from typing import NamedTuple


class Named(NamedTuple):
    """A run, and what it showed when it was found."""

    seed: int
    members: int | None
    showed: str


NAMED = (
    Named(
        3, None, "a deposed leader put what waited into its log under the new leader's term: two entries at one index"
    ),
    Named(1, None, "a joiner took the members of before it was added for its removal, and stopped"),
    Named(7, None, "the same, with three members"),
    Named(2, 1, "the same, with one member"),
    Named(23, None, "a learner that never came was promoted in a short log: the quorum was gone"),
    Named(186, None, "a late release of an ended binding freed the next one of the same container"),
    Named(21, None, "a member that lagged refused a leader that was taken in meanwhile, and never caught up"),
    Named(20272, None, "the same"),
    Named(20299, None, "the same, with the leader under a name that was removed before"),
    Named(44, None, "a connection that replaced another was told in the wrong order (the simulation's own fault)"),
    Named(40818, 3, "the loss of a connection was told after the next one stood (the simulation's own fault)"),
    Named(41117, 5, "the same"),
    Named(51364, 1, "one of two did not know that it had a vote, and had the longer journal: neither could lead"),
    Named(71237, 1, "whoever looked at a member's clock from outside drove it ahead (the simulation's own fault)"),
    Named(4, 3, "a voter was lost while only two had a vote (the simulation asked for too much)"),
    Named(1009, None, "calls that were under way at the end were forgotten (the simulation's own fault)"),
    Named(20, None, "the last commit was on its way when the end was judged (the simulation's own fault)"),
)

OTHERS = range(100, 150 - len(NAMED))
"""What makes them fifty."""
