"""Owns the commands about nodes that report, fall silent and come back; `commands` has them in its list."""

from __future__ import annotations

from ipamd.core.origin import Origin
from ipamd.core.values import Value


class Seen(Value):
    """One binding, as a node looked at it. `cni_network` and `ifname` fill in what an import did not know."""

    attachment_id: int
    generation: int
    alive: bool | None
    cni_network: str | None = None
    ifname: str | None = None


class Report(Value):
    """What a node saw of its own attachments; those whose sighting stays as it is may be left out.

    `index` is the log index that the node knew before it looked: what was bound later is not judged. `boot_id` None:
    somebody else speaks of the node (`node sync`), who may add life and never takes it away.
    """

    origin: Origin
    node: str
    boot_id: str | None
    index: int
    seen: tuple[Seen, ...] = ()
    spooled: int = 0
    conflicts: int = 0


class SilentNode(Value):
    """A node that the leader heard last at `since_ms` (wall clock), too long ago."""

    node: str
    since_ms: int


class LoseNodes(Value):
    """Count nodes as lost. `doubtful` are others that are silent too, not for so long yet."""

    origin: Origin
    silent: tuple[SilentNode, ...]
    doubtful: tuple[str, ...] = ()


class FindNodes(Value):
    """Lost nodes are heard again."""

    origin: Origin
    nodes: tuple[str, ...]


class ConfirmSilence(Value):
    """An operator confirms that the nodes lost so far are lost: mass silence ends, what waits for it goes on."""

    origin: Origin


class NoteRefused(Value):
    """A DEL that a node had put aside is refused for good: what it was to free may be held for ever."""

    origin: Origin
    node: str
    detail: str
