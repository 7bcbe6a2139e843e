"""Owns the nouns: what a pool, a reservation and an attachment are. Frozen values, no behaviour that needs a store.

Three kinds of time occur and are never mixed: `*_log_ms` counts on the log's own clock and decides; `*_ms` is wall
clock (Unix epoch, milliseconds, UTC) and is for people and history only; durations end in `_s` or `_ms`.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from ipamd.core.addresses import Address, Network
from ipamd.core.eventkind import EventKind as EventKind  # noqa: PLC0414 - one of the nouns, too long a list for here
from ipamd.core.host import Boot as Boot  # noqa: PLC0414 - nouns too, and so are these
from ipamd.core.host import MassSilence as MassSilence  # noqa: PLC0414
from ipamd.core.host import Node as Node  # noqa: PLC0414
from ipamd.core.host import Sighting as Sighting  # noqa: PLC0414
from ipamd.core.intervals import Span, Spans, contains, normalise, subtract
from ipamd.core.values import Value

FOREVER = -1
"""`hold_s` and `hold_until_log_ms`: no end."""

DEFAULT_SPACE = "default"


class Strategy(StrEnum):
    """How a pool chooses among free addresses."""

    LOWEST = "lowest"
    ROUND_ROBIN = "round-robin"
    RANDOM = "random"


class AttachmentState(StrEnum):
    """`bound`: a container has it; `held`: kept for the pod; `suspect`: bound, but its node has rebooted since."""

    BOUND = "bound"
    HELD = "held"
    SUSPECT = "suspect"


class Start(NamedTuple):
    """When a CNI call started on its node: the order of the node's boots (from 1), then CLOCK_BOOTTIME in ns."""

    boot: int
    ns: int


OLDEST = Start(0, 0)
"""The start of what has none: made by the API or an import, or spooled by a boot that was never seen."""


class Route(Value):
    """A route of a pool. `gw` None: through the gateway of the range if the route is a default route, else on link."""

    dst: Network
    gw: Address | None = None


class Dns(Value):
    """Name service settings, as in a CNI result."""

    nameservers: tuple[str, ...] = ()
    domain: str = ""
    search: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class Range(Value, dict=True, gc=True):
    """One inner range of a pool.

    `first` and `last` are the bounds that count, inside the subnet and moved off network and broadcast address;
    `range_start` and `range_end` are what the operator wrote, None where nothing was written. Excludes stay in the
    order given, may overlap and may lie outside.
    """

    subnet: Network
    first: int
    last: int
    range_start: int | None = None
    range_end: int | None = None
    excludes: tuple[Span, ...] = ()
    gateway: int | None = None

    @property
    def family(self) -> int:
        """4 or 6."""
        return self.subnet.family

    @cached_property
    def usable(self) -> Spans:
        """What may be handed out: the bounds without excludes and gateway."""
        holes = [*self.excludes, *([Span(self.gateway, self.gateway)] if self.gateway is not None else [])]
        return subtract((Span(self.first, self.last),), normalise(holes))

    def gives(self, address: Address) -> bool:
        """Whether the range may hand an address out."""
        return address.family == self.family and contains(self.usable, address.value)


RangeSet = tuple[Range, ...]
"""An outer entry of `ranges`: gives one address an attachment; its ranges are alternatives, tried in order."""


class PoolDefinition(Value):
    """What an operator says of a pool. None: follows the cluster's settings."""

    name: str
    sets: tuple[RangeSet, ...]
    space: str = DEFAULT_SPACE
    routes: tuple[Route, ...] = ()
    dns: Dns = Dns()
    strategy: Strategy = Strategy.LOWEST
    cooldown_s: int | None = None
    cooldown_min_s: int = 0
    hold_s: int = 0
    reclaim: str | None = None
    allow_overlap: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    inline: bool = False


class Pool(Value):
    """A pool as the state holds it."""

    id: int
    definition: PoolDefinition
    created_ms: int

    @property
    def name(self) -> str:
        """Unique among all pools, whatever their space."""
        return self.definition.name

    @property
    def space(self) -> str:
        """Name of the address space in which its addresses are unique."""
        return self.definition.space

    @property
    def sets(self) -> tuple[RangeSet, ...]:
        """The outer entries of `ranges`."""
        return self.definition.sets


class Reservation(Value):
    """A pool's promise to a pod. At most one for a (pool, pod_ref)."""

    id: int
    pool_id: int
    pod_ref: str
    pod_uids: tuple[str, ...] = ()
    created_ms: int = 0
    pinned: bool = False
    note: str = ""

    @property
    def pod_uid(self) -> str | None:
        """The pod uid seen last."""
        return self.pod_uids[-1] if self.pod_uids else None


class Owner(Value):
    """Who holds an attachment: one interface of one container in one CNI network on one node.

    `netns_inode` is what the answering host saw at the path in CNI_NETNS. None: not known.
    """

    container_id: str | None
    node: str | None = None
    cni_network: str | None = None
    netns: str | None = None
    netns_inode: int | None = None


class Attachment(Value):
    """One interface of a reservation. `owner` is None while it is held. At most one for a (reservation, ifname)."""

    id: int
    reservation_id: int
    pool_id: int
    ifname: str
    owner: Owner | None
    start: Start
    generation: int
    since_ms: int
    hold_until_log_ms: int | None = None
    """While held: when it ends on the log's clock; FOREVER: never. None while bound."""

    suspect: bool = False
    bound_index: int = 0
    """The log index of the ADD that bound it last: a report that looked before then says nothing of it."""

    @property
    def state(self) -> AttachmentState:
        """Held without an owner, else bound or suspect."""
        if self.owner is None:
            return AttachmentState.HELD
        return AttachmentState.SUSPECT if self.suspect else AttachmentState.BOUND


class AssignedAddress(Value):
    """An address that an attachment holds. At most one for a (space, address): the first promise."""

    space: str
    address: Address
    attachment_id: int
    pool_id: int
    position: int
    """Which outer entry of the pool's ranges gave it, from 0."""

    prefix: int
    """Length of the subnet's prefix, for the result."""


class Cooling(Value):
    """A freed address that waits. Its former holder may have it back; others only when nothing else is free."""

    space: str
    address: Address
    pool_id: int
    pod_ref: str
    ifname: str
    freed_log_ms: int
    hard_until_log_ms: int
    """Before this nobody but the former holder gets it."""

    until_log_ms: int
    """From here on it is free like any other."""


class Quarantine(Value):
    """An address that an operator took out of use. A holder keeps it until it lets go."""

    space: str
    address: Address
    until_log_ms: int | None
    note: str
    since_ms: int
    by: str


class Cursor(Value):
    """Where a round-robin set goes on: the inner range and the address handed out last."""

    pool_id: int
    position: int
    order: int
    address: Address


class GenerationFloor(Value):
    """The highest generation of what a pool has freed: new attachments begin above it, so that none comes twice."""

    pool_id: int
    generation: int


class Tombstone(Value):
    """The mark that a DEL leaves: an ADD of this attachment that started no later is refused."""

    node: str
    cni_network: str
    container_id: str
    ifname: str
    start: Start
    until_log_ms: int


class Event(Value):
    """Something that happened, with who asked for it. `index` counts 1, 2, 3, ... without gaps."""

    index: int
    at_ms: int
    kind: EventKind
    by: str
    request_id: str
    space: str | None = None
    pool: str | None = None
    pod_ref: str | None = None
    ifname: str | None = None
    address: Address | None = None
    node: str | None = None
    detail: str = ""
    begins: bool = False
    """The address had no holder before: what held it earlier, if anybody did, is not this holding."""


class Settings(Value):
    """The settings that decide what is allocated or freed; replicated (interface, section 1)."""

    inline_pools: bool = True
    cooldown_s: int = 300
    reclaim: str = "never"
    node_lost_s: int = 300
    evidence_grace_s: int = 120
    tombstone_s: int = 3600
    events_days: int = 30
    events_max: int = 5_000_000


class Role(StrEnum):
    """What the bearer of a token may do."""

    READER = "reader"
    OPERATOR = "operator"
    ADMIN = "admin"
    NODE = "node"
    ENROL = "enrol"


class Token(Value):
    """A bearer token. Only the SHA-256 of its secret is kept. `expires_ms` None: it does not end."""

    id: str
    name: str
    role: Role
    digest: bytes
    created_ms: int
    expires_ms: int | None = None
    node: str | None = None
    used_ms: int | None = None
    """When it was used last, to the hour. None: not yet."""


class Held(Value):
    """An attachment with its addresses, in the order of the pool's sets."""

    attachment: Attachment
    addresses: tuple[AssignedAddress, ...] = ()


class Member(Value):
    """A Raft member: its name, the random id of its data directory, and how others reach it."""

    name: str
    member_id: str
    raft: str
    api: str
    voter: bool = True
    level: int = 1
    """What its program knows of the log (core.levels), as far as it has said."""


class Cluster(Value):
    """The cluster's identity, given once when it is founded."""

    id: str
    founded_ms: int
    level: int = 1
    """The highest level of a command in its log (core.levels): every member's program is of that one or above."""

    epoch: int = 0
    """How often its state was restored from a backup: each time it became a new cluster."""
