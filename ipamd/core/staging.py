"""Owns the import: parts put aside by several entries of the log, and one entry that carries out all of it or nothing.

An import is a statement about what is so already: it makes bindings that no call of ours has made, which count as
oldest and are open in all that their source did not say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ipamd.core.asked import Asked, asked_of, pools_of
from ipamd.core.commands import FinishImport, PoolRequest, StageImport
from ipamd.core.draft import Draft
from ipamd.core.imports import STAGED_S, Conflict, Fate, Finding, StagedPart, Verdict, is_open_ifname, open_ifname
from ipamd.core.model import (
    FOREVER,
    OLDEST,
    AssignedAddress,
    Attachment,
    EventKind,
    Owner,
    Pool,
    Reservation,
)
from ipamd.core.outcomes import Code, Done, Imported, ImportedPool, Outcome, Refused
from ipamd.core.pools import place_in
from ipamd.core.ports import View
from ipamd.core.weigh import Destination, weigh
from ipamd.core.withheld import put_pool


def stage(draft: Draft, command: StageImport) -> Outcome:
    """Put a part aside. A second one under its number is the same one, asked for again."""
    if not any(one.number == command.number for one in draft.view.staged(command.import_id)):
        until = draft.stamp.log_ms + STAGED_S * 1000
        draft.put(StagedPart(command.import_id, command.number, until, command.findings))
    return Done()


def finish(draft: Draft, command: FinishImport) -> Outcome:
    """Carry the import out, unless one of its findings contradicts what is there."""
    parts = draft.view.staged(command.import_id)
    if [one.number for one in parts] != list(range(command.parts)):
        detail = f"the import is staged in {len(parts)} of {command.parts} parts only; start it again"
        return Refused(Code.NOT_FOUND, detail)
    destinations = find_destinations(draft.view, command.pools)
    if isinstance(destinations, Refused):
        return destinations
    for part in parts:
        draft.drop(part)
    findings = [finding for part in parts for finding in part.findings]
    verdicts = list(weigh(draft.view, destinations, findings))
    conflicts = conflicts_of(findings, verdicts)
    if conflicts:
        return Imported((), conflicts)
    pools = _make_pools(draft, destinations)
    made = [finding for finding, verdict in zip(findings, verdicts, strict=True) if verdict.fate is Fate.MADE]
    _Bringing(draft, pools).bring(made)
    return Imported(counts_of(destinations, findings, verdicts))


def find_destinations(view: View, requests: Sequence[PoolRequest]) -> list[Destination] | Refused:
    """The pools of an import, in their order; those that are not there yet have no id.

    A pool that is there serves even where none may be made on first use.
    """
    found: list[Destination] = []
    for request in requests:
        there = pools_of(view, request)
        asked = Asked(there[0], ()) if there else asked_of(view, request, "")
        if isinstance(asked, Refused):
            return asked
        found.append(Destination(asked.pool, not asked.is_made))
    return found


def conflicts_of(findings: Sequence[Finding], verdicts: Sequence[Verdict]) -> tuple[Conflict, ...]:
    """The findings that are refused, with where they stand in the source."""
    return tuple(
        Conflict(finding.place, finding.address, verdict.why)
        for finding, verdict in zip(findings, verdicts, strict=True)
        if verdict.fate is Fate.REFUSED
    )


def counts_of(
    destinations: Sequence[Destination], findings: Sequence[Finding], verdicts: Sequence[Verdict]
) -> tuple[ImportedPool, ...]:
    """How many addresses of each pool are made, are kept and are gone."""
    counts = Counter((finding.pool, verdict.fate) for finding, verdict in zip(findings, verdicts, strict=True))
    return tuple(
        ImportedPool(
            one.pool.name,
            one.pool.space,
            one.is_new,
            *(counts[number, fate] for fate in (Fate.MADE, Fate.KEPT, Fate.GONE)),
        )
        for number, one in enumerate(destinations)
    )


def _make_pools(draft: Draft, destinations: Sequence[Destination]) -> list[Pool]:
    """The pools as they are from here on. Two requests may mean one new pool."""
    made: dict[str, Pool] = {}
    pools: list[Pool] = []
    for one in destinations:
        pool = one.pool
        if one.is_new and pool.name not in made:
            made[pool.name] = Pool(draft.new_id(), pool.definition, draft.stamp.wall_ms)
            put_pool(draft, made[pool.name])
            draft.event(EventKind.POOL_CREATED, space=pool.space, pool=pool.name, detail="imported")
        pools.append(made[pool.name] if one.is_new else pool)
    return pools


@dataclass(slots=True)
class _Holder:
    """An attachment of this import, or one that it adds to, and which outer entries of its pool serve it."""

    attachment: Attachment
    positions: set[int] = field(default_factory=set)


class _Bringing:
    """Makes what is new. It remembers what it made: the view does not show it yet."""

    def __init__(self, draft: Draft, pools: Sequence[Pool]) -> None:
        self._draft, self._pools = draft, pools
        self._reservations: dict[tuple[int, str], tuple[Reservation, list[_Holder]]] = {}
        self._nodes: set[str] = set()

    def bring(self, findings: Sequence[Finding]) -> None:
        """Make each finding, which nothing contradicts."""
        for finding in findings:
            if finding.node is not None and finding.node not in self._nodes:
                self._nodes.add(finding.node)
                self._draft.meet_node(finding.node)
            self._bring(finding, self._pools[finding.pool])

    def _bring(self, finding: Finding, pool: Pool) -> None:
        position, prefix = place_in(pool, finding.address) or (0, 0)
        reservation, holders = self._reservation(pool, finding.pod_ref)
        holder = _find_holder(holders, finding, position) or self._attach(finding, reservation, holders)
        holder.positions.add(position)
        self._assign(AssignedAddress(pool.space, finding.address, holder.attachment.id, pool.id, position, prefix))
        self._draft.event(
            EventKind.BOUND if finding.container_id else EventKind.HELD,
            space=pool.space,
            pool=pool.name,
            pod_ref=finding.pod_ref,
            ifname=finding.ifname,
            address=finding.address,
            node=finding.node,
            detail="imported",
            begins=True,
        )

    def _reservation(self, pool: Pool, pod_ref: str) -> tuple[Reservation, list[_Holder]]:
        known = self._reservations.get((pool.id, pod_ref))
        if known is not None:
            return known
        view = self._draft.view
        old = view.reservation(pool.id, pod_ref)
        if old is None:
            new = Reservation(self._draft.new_id(), pool.id, pod_ref, created_ms=self._draft.stamp.wall_ms)
            self._draft.put(new)
            found = new, list[_Holder]()
        else:
            attachments = view.attachments(old.id)
            found = old, [_Holder(one, {its.position for its in view.assigned(one.id)}) for one in attachments]
        return self._reservations.setdefault((pool.id, pod_ref), found)

    def _attach(self, finding: Finding, reservation: Reservation, holders: list[_Holder]) -> _Holder:
        draft, owner = self._draft, None
        if finding.container_id is not None:
            owner = Owner(finding.container_id, finding.node, finding.cni_network)
        attachment = Attachment(
            draft.new_id(),
            reservation.id,
            reservation.pool_id,
            finding.ifname or open_ifname({one.attachment.ifname for one in holders}),
            owner,
            OLDEST,
            draft.view.generation_floor(reservation.pool_id) + 1,
            draft.stamp.wall_ms,
            FOREVER if owner is None else None,
            bound_index=draft.stamp.log_index,
        )
        draft.put(attachment)
        holders.append(_Holder(attachment))
        return holders[-1]

    def _assign(self, assigned: AssignedAddress) -> None:
        """Take the address, from whatever kept it back. One in quarantine stays there."""
        draft, space, address = self._draft, assigned.space, assigned.address
        cooling = draft.view.cooling(space, address)
        if cooling is not None:
            draft.drop(cooling)
        elif not draft.in_quarantine(space, address):
            draft.occupy(space, address)
        draft.put(assigned)


def _find_holder(holders: Sequence[_Holder], finding: Finding, position: int) -> _Holder | None:
    """The attachment that a finding belongs to: of its interface, or an open one of its container with room for it."""
    for one in holders:
        attachment = one.attachment
        container_id = attachment.owner.container_id if attachment.owner else None
        if finding.ifname is not None and attachment.ifname == finding.ifname:
            return one
        is_open = finding.ifname is None and is_open_ifname(attachment.ifname)
        if is_open and container_id == finding.container_id and position not in one.positions:
            return one
    return None
