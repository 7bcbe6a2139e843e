"""Owns the nouns of hosts: a node, its boots, what its reports saw, and many nodes that are silent at once."""

from __future__ import annotations

from ipamd.core.values import Value


class Node(Value):
    """A host that runs pods, known since its first call or report."""

    name: str
    since_ms: int
    newest_boot: int = 0
    """The order of its newest boot, also where that boot itself is forgotten. 0: none was seen."""

    reported_log_ms: int | None = None
    """Its last report that is in the log. None: it never reported, so its silence means nothing."""

    reported_ms: int | None = None
    lost_log_ms: int | None = None
    """Since when it counts as lost; None: it does not."""

    silent_since_ms: int | None = None
    """While lost: when it was heard last, as the leader knew it."""

    back_log_ms: int = 0
    """When it came back from being lost, the last time."""

    clash: bool = False
    """Two hosts have this name: what is reported under it counts for nothing until the name is forgotten."""

    spooled: int = 0
    """How many DELs waited on the node, as of its last report."""

    conflicts: int = 0
    """How many of its living attachments had lost their addresses to others, as of its last report."""

    @property
    def state(self) -> str:
        """What it is, in a word."""
        if self.clash:
            return "clash"
        if self.reported_log_ms is None:
            return "unknown"
        return "alive" if self.lost_log_ms is None else "lost"


class Sighting(Value):
    """What the last report of its node said of one binding. Void once the attachment has another generation."""

    attachment_id: int
    generation: int
    alive: bool | None
    """Its namespace was there, was gone, or (None) could not be told."""

    gone_log_ms: int | None = None
    """Since when every report has said that it is gone."""

    gone_index: int = 0
    """The log index of the first of those: the next one must have looked after it."""

    contested: bool = False
    """Another node's claim to it was refused since: that is told once."""


class MassSilence(Value):
    """Many nodes fell silent at once, which is more likely the network's fault: while it stands nothing is reclaimed.

    Once confirmed (not `stands`) it remembers when: nodes that were lost before do not count again.
    """

    stands: bool
    since_log_ms: int
    since_ms: int


class Boot(Value):
    """A boot of a node. `order` counts from 1 in the order in which the boots were first seen."""

    node: str
    boot_id: str
    order: int
    since_ms: int
