"""Owns the interfaces between the layers: what the core reads, and what storage and consensus offer.

`View` is what decisions read; memory and SQLite implement it and one test suite runs over both. `StateMachine` is what
consensus drives and storage implements. `Log` is what the use cases need of consensus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, Protocol

from ipamd.core.addresses import Address, Network
from ipamd.core.counts import Doubt as Doubt  # noqa: PLC0414 - what snapshots tell, and so is this
from ipamd.core.counts import FamilyCounts as FamilyCounts  # noqa: PLC0414
from ipamd.core.entries import Item
from ipamd.core.imports import StagedPart
from ipamd.core.intervals import Spans
from ipamd.core.model import (
    AssignedAddress,
    Attachment,
    AttachmentState,
    Boot,
    Cluster,
    Cooling,
    Cursor,
    Event,
    Held,
    Member,
    Node,
    Pool,
    Quarantine,
    Reservation,
    Settings,
    Token,
    Tombstone,
)
from ipamd.core.nodeview import NodeView
from ipamd.core.outcomes import Outcome
from ipamd.core.restoredview import RestoredView
from ipamd.core.tokenview import TokenView
from ipamd.core.values import Value


class View(NodeView, RestoredView, TokenView, Protocol):
    """The state as a decision may see it. Every sequence is in a fixed order, the same on each member."""

    @property
    def last_id(self) -> int:
        """The highest record id given so far."""

    @property
    def last_event(self) -> int:
        """The index of the newest event."""

    def cluster(self) -> Cluster | None:
        """The cluster's identity and level; None before it was founded."""

    def cluster_id(self) -> str | None:
        """The cluster's id; None before it was founded."""

    def members(self) -> Sequence[Member]:
        """The Raft members, by name."""

    def settings(self) -> Settings:
        """The replicated settings."""

    def pool(self, name: str) -> Pool | None:
        """A pool by its name."""

    def pool_by_id(self, pool_id: int) -> Pool | None:
        """A pool by its id."""

    def pools_of_space(self, space: str) -> Sequence[Pool]:
        """The pools of a space, by name."""

    def pools_on(self, space: str, subnet: Network) -> Sequence[Pool]:
        """The pools of a space that have a range of exactly this subnet, by name."""

    def reservation(self, pool_id: int, pod_ref: str) -> Reservation | None:
        """The reservation of a pod in a pool."""

    def reservation_by_id(self, reservation_id: int) -> Reservation | None:
        """A reservation by its id."""

    def attachment_by_id(self, attachment_id: int) -> Attachment | None:
        """An attachment by its id."""

    def attachments(self, reservation_id: int) -> Sequence[Attachment]:
        """The attachments of a reservation, by ifname."""

    def attachments_of_container(self, container_id: str, ifname: str) -> Sequence[Attachment]:
        """The attachments bound to a container's interface, on any node and in any CNI network, by id.

        Those of an import that did not know the interface are among them, whichever is asked for.
        """

    def attachments_of_node(self, node: str, after_id: int, limit: int) -> Sequence[Attachment]:
        """Up to `limit` attachments bound on a node, by id, with ids above `after_id`."""

    def attachments_of_pool(self, pool_id: int) -> Iterable[Attachment]:
        """All attachments of a pool, by id."""

    def assigned(self, attachment_id: int) -> Sequence[AssignedAddress]:
        """The addresses of an attachment, by position."""

    def assigned_of_pool(self, pool_id: int) -> Iterable[AssignedAddress]:
        """All addresses held through a pool, by address."""

    def holder(self, space: str, address: Address) -> AssignedAddress | None:
        """Who holds an address, through whatever pool of its space."""

    def cooling(self, space: str, address: Address) -> Cooling | None:
        """The cooling record of an address."""

    def cooling_of_pod(self, pool_id: int, pod_ref: str, ifname: str) -> Sequence[Cooling]:
        """Addresses that cool and were last held by this attachment, by address."""

    def oldest_cooling(self, space: str, first: Address, last: Address, now_log_ms: int) -> Cooling | None:
        """The address between two (inclusive) that cools longest and is past its hard part; ties: the lowest."""

    def quarantine(self, space: str, address: Address) -> Quarantine | None:
        """The quarantine of an address."""

    def next_free(self, pool: Pool, position: int, order: int, first: int, last: int) -> int | None:
        """The lowest address in [first, last] that a range gives and nothing in its space occupies.

        The range is `pool.sets[position][order]`. Occupied is what is assigned, cools or is in quarantine. The state
        need not have the pool.
        """

    def cursor(self, pool_id: int, position: int) -> Cursor | None:
        """Where a round-robin set goes on."""

    def generation_floor(self, pool_id: int) -> int:
        """The highest generation of what a pool has freed; 0: nothing yet."""

    def tombstone(self, node: str, cni_network: str, container_id: str, ifname: str) -> Tombstone | None:
        """The mark of a DEL."""

    def due_holds(self, now_log_ms: int, limit: int) -> Sequence[Attachment]:
        """Held attachments whose hold ended by now, the earliest first (ties: by id)."""

    def due_cooling(self, now_log_ms: int, limit: int) -> Sequence[Cooling]:
        """Cooling addresses that are free by now, the earliest first (ties: by space and address)."""

    def due_quarantines(self, now_log_ms: int, limit: int) -> Sequence[Quarantine]:
        """Quarantines that ended by now, the earliest first (ties: by space and address)."""

    def due_tombstones(self, now_log_ms: int, limit: int) -> Sequence[Tombstone]:
        """Tombstones that ended by now, the earliest first (ties: by their key)."""

    def staged(self, import_id: str) -> Sequence[StagedPart]:
        """The parts of an import that are staged, by number."""

    def due_parts(self, now_log_ms: int, limit: int) -> Sequence[StagedPart]:
        """Staged parts that nobody finished by now, the earliest first (ties: by import and number)."""


class LogEntry(Value):
    """A committed entry: `data` is an encoded entry (core.entries), or empty for Raft's own no-op."""

    index: int
    term: int
    data: bytes


class Applied(Value):
    """The outcome of one command of an entry."""

    op: bytes
    index: int
    outcome: Outcome


class StateMachine(Protocol):
    """What applies the log. All calls come from one thread."""

    @property
    def applied(self) -> tuple[int, int]:
        """Index and term of the last entry applied; (1, 0) at the very start (index 1 is Raft's first, empty entry)."""

    @property
    def wall_ms(self) -> int:
        """The wall clock of the last entry applied: it never falls."""

    @property
    def log_ms(self) -> int:
        """The log clock of the last entry applied."""

    @property
    def next_due_log_ms(self) -> int | None:
        """When the earliest hold, cooldown, quarantine, tombstone or stored outcome ends; None: nothing waits."""

    @property
    def members(self) -> tuple[Member, ...]:
        """The Raft members as of the last entry applied, by name: the same object until one changes. Empty: none."""

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id; None before it was founded."""

    @property
    def level(self) -> int:
        """The highest level of a command in the log so far (core.levels); 1 at the very start."""

    def apply(self, entries: Sequence[LogEntry]) -> list[Applied]:
        """Apply entries in one transaction that also stores the last index and term; the outcomes in order.

        The first index is `applied + 1`. An op id that is known gives its stored outcome. Any exception means that the
        state cannot be trusted any more: the caller stops the process.
        """

    def checkpoint(self) -> int:
        """Make what is applied durable; returns the index up to which it surely is (possibly an older one)."""

    def inspect(self, path: str) -> tuple[int, int]:
        """Index and term of the snapshot in a file that another member made. Raises SnapshotRefused.

        It is whole (its hash), sound, of a format that this program reads, and of this cluster if there is one here.
        """

    def install(self, path: str) -> None:
        """Take the state from a snapshot that was inspected, at once and durably: a crash leaves either state.

        Raises SnapshotRefused, with the old state as it was.
        """

    def close(self) -> None:
        """Close the files."""


class SnapshotRefused(Exception):  # noqa: N818 - what happens to the file
    """A snapshot's file is not to be installed: one sentence says why. Nothing was changed."""


class Unavailable(Exception):  # noqa: N818 - a state of the cluster, named as the API names it
    """No answer could be had. `outcome` none: surely nothing was changed; unknown: ask again under the same key."""

    def __init__(self, detail: str, outcome: Literal["none", "unknown"], retry_after_s: float = 1.0) -> None:
        super().__init__(detail)
        self.detail = detail
        self.outcome = outcome
        self.retry_after_s = retry_after_s


class Answer(Value):
    """The outcome of a proposal, and the index of the entry that carried it."""

    index: int
    outcome: Outcome


class LogStatus(NamedTuple):
    """What this member knows of the log. `leader` is a member's name; None: none known."""

    leader: str | None
    is_leader: bool
    term: int
    applied: int
    committed: int
    log_ms: int
    """The log clock now: what an entry made at this moment would be stamped with."""

    next_due_log_ms: int | None
    """The machine's `next_due_log_ms`, as of the entry applied last."""


class Log(Protocol):
    """The replicated log, as the use cases see it; called from the HTTP loop's thread."""

    async def propose(self, item: Item, timeout_s: float) -> Answer:
        """Put a command into the log and wait for its outcome. Raises Unavailable."""

    async def barrier(self, timeout_s: float) -> int:
        """Wait until this member has applied all that was acknowledged before; its index. Raises Unavailable."""

    def status(self) -> LogStatus:
        """A snapshot, without waiting."""

    def watch(self, wake: Callable[[], None]) -> None:
        """Have `wake` called, in whatever thread, each time this member has applied more of the log."""


class ReservationFilter(NamedTuple):
    """What a list of reservations is narrowed to; None: anything."""

    pool: str | None = None
    pod_ref: str | None = None
    node: str | None = None
    container_id: str | None = None
    address: Address | None = None
    state: AttachmentState | None = None


class ReservationRow(NamedTuple):
    """A reservation with its pool and all its attachments, by ifname."""

    pool: Pool
    reservation: Reservation
    held: tuple[Held, ...]


class HistoryRow(NamedTuple):
    """One holder of an address on one node; `to_*` None: it holds it still. Indexes are those of events.

    `from_index` 0: it began at `from_ms` or before, longer ago than events are kept.
    """

    pool: str
    pod_ref: str
    ifname: str
    node: str | None
    from_ms: int
    to_ms: int | None
    from_index: int
    to_index: int | None


class NodeRow(NamedTuple):
    """A node with how many attachments it has bound."""

    node: Node
    boots: tuple[Boot, ...]
    bound: int


class Snapshot(View, Protocol):
    """A consistent read of one moment: a View, and the lists that only readers need."""

    @property
    def applied_index(self) -> int:
        """The log index that this snapshot reflects."""

    @property
    def log_ms(self) -> int:
        """The log clock at that index."""

    @property
    def wall_ms(self) -> int:
        """The wall clock at that index."""

    def pools(self, after: str, limit: int) -> Sequence[Pool]:
        """Up to `limit` pools with names above `after`, by name."""

    def reservations(
        self, wanted: ReservationFilter, after: tuple[str, str] | None, limit: int
    ) -> Sequence[ReservationRow]:
        """Up to `limit` matching reservations above `after` = (pool name, pod_ref), by (pool name, pod_ref)."""

    def counts(self, pool: Pool) -> dict[int, FamilyCounts]:
        """The counts of a pool, by family (4, 6); families that the pool lacks are absent."""

    def doubts(self, pool: Pool) -> Sequence[Doubt]:
        """What of the bound addresses of a pool is suspect or lost, by family and node."""

    def spent(self, pool: Pool, family: int, spans: Spans) -> FamilyCounts:
        """How the addresses of some spans, which the pool gives, are spent."""

    def history(self, space: str, address: Address, before_index: int | None, limit: int) -> Sequence[HistoryRow]:
        """The holders of an address, newest first, with `from_index` below `before_index`."""

    def holding_at(self, space: str, address: Address, at_ms: int) -> HistoryRow | None:
        """Who held an address at a moment, as far as events are kept; None: nobody."""

    def events_since_ms(self) -> int | None:
        """Since when every event is kept; None: since the first there ever was."""

    def events(self, after: int, limit: int) -> Sequence[Event]:
        """Up to `limit` events with an index above `after`, oldest first."""

    def nodes(self, after: str, limit: int) -> Sequence[NodeRow]:
        """Up to `limit` nodes with names above `after`, by name."""

    def unclaimed_count(self) -> int:
        """How many attachments are bound on no node that is known: an import brought them, and nobody came since."""

    def unclaimed(self, after_id: int, limit: int) -> Sequence[Attachment]:
        """Up to `limit` of them, by id, with ids above `after_id`."""

    def tokens(self) -> Sequence[Token]:
        """All tokens, by id."""

    def next_token_end(self, after_ms: int) -> int | None:
        """When the next token ends, of those that had not at `after_ms` (wall clock); None: none does."""


class State(Protocol):
    """What the use cases read from: snapshots of this member's own state."""

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """A consistent snapshot; usable in the thread that opened it, until the context ends. Never blocks writers."""
