"""Owns the two ways between records and rows: `*_row` gives the values of a row, `to_*` makes the record of one."""

# ruff: noqa: D103 - the names say it all, see above

from __future__ import annotations

import json
from typing import Any

from ipamd.core.addresses import Address, from_blob, to_blob
from ipamd.core.imports import StagedPart, decode_findings, encode_findings
from ipamd.core.model import (
    AssignedAddress,
    Attachment,
    Boot,
    Cluster,
    Cooling,
    Cursor,
    Event,
    EventKind,
    GenerationFloor,
    MassSilence,
    Member,
    Node,
    Owner,
    Quarantine,
    Reservation,
    Role,
    Settings,
    Sighting,
    Start,
    Token,
    Tombstone,
)
from ipamd.core.restored import Disputed, Restored, Unconfirmed
from ipamd.storage.tables import Row

SINGLE = 1
"""The id of the only row of a table that has just one."""

_KINDS = {kind.value: kind for kind in EventKind}
_write_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def json_text(data: Any) -> str:
    """JSON without spaces, the same for the same data."""
    return _write_json(data)


def reservation_row(it: Reservation) -> Row:
    uids = _write_json(it.pod_uids) if it.pod_uids else "[]"
    return it.id, it.pool_id, it.pod_ref, uids, it.created_ms, int(it.pinned), it.note


def to_reservation(row: Row) -> Reservation:
    uids = () if row[3] == "[]" else tuple(json.loads(row[3]))
    return Reservation(row[0], row[1], row[2], uids, row[4], bool(row[5]), row[6])


def attachment_row(it: Attachment) -> Row:
    owner = it.owner
    who = (
        (0, *_NOBODY)
        if owner is None
        else (1, owner.container_id, owner.node, owner.cni_network, owner.netns, owner.netns_inode)
    )
    return (
        it.id,
        it.reservation_id,
        it.pool_id,
        it.ifname,
        *who,
        it.start.boot,
        it.start.ns,
        it.generation,
        it.since_ms,
        it.hold_until_log_ms,
        int(it.suspect),
        it.bound_index,
    )


def to_attachment(row: Row) -> Attachment:
    (
        id_,
        reservation_id,
        pool_id,
        ifname,
        bound,
        container_id,
        node,
        cni_network,
        netns,
        netns_inode,
        boot,
        ns,
        generation,
        since_ms,
        hold_until,
        suspect,
        bound_index,
    ) = row
    owner = Owner(container_id, node, cni_network, netns, netns_inode) if bound else None
    start = Start(boot, ns)
    return Attachment(
        id_, reservation_id, pool_id, ifname, owner, start, generation, since_ms, hold_until, bool(suspect), bound_index
    )


def assigned_row(it: AssignedAddress) -> Row:
    return it.space, to_blob(it.address), it.attachment_id, it.pool_id, it.position, it.prefix


def to_assigned(row: Row) -> AssignedAddress:
    return AssignedAddress(row[0], from_blob(row[1]), *row[2:])


def cooling_row(it: Cooling) -> Row:
    return (
        it.space,
        to_blob(it.address),
        it.pool_id,
        it.pod_ref,
        it.ifname,
        it.freed_log_ms,
        it.hard_until_log_ms,
        it.until_log_ms,
    )


def to_cooling(row: Row) -> Cooling:
    return Cooling(row[0], from_blob(row[1]), *row[2:])


def quarantine_row(it: Quarantine) -> Row:
    return it.space, to_blob(it.address), it.until_log_ms, it.note, it.since_ms, it.by


def to_quarantine(row: Row) -> Quarantine:
    return Quarantine(row[0], from_blob(row[1]), *row[2:])


def cursor_row(it: Cursor) -> Row:
    return it.pool_id, it.position, it.order, to_blob(it.address)


def to_cursor(row: Row) -> Cursor:
    return Cursor(row[0], row[1], row[2], from_blob(row[3]))


def floor_row(it: GenerationFloor) -> Row:
    return it.pool_id, it.generation


def to_floor(row: Row) -> GenerationFloor:
    return GenerationFloor(*row)


def tombstone_row(it: Tombstone) -> Row:
    return it.node, it.cni_network, it.container_id, it.ifname, it.start.boot, it.start.ns, it.until_log_ms


def to_tombstone(row: Row) -> Tombstone:
    return Tombstone(row[0], row[1], row[2], row[3], Start(row[4], row[5]), row[6])


def node_row(it: Node) -> Row:
    return (
        it.name,
        it.since_ms,
        it.newest_boot,
        it.reported_log_ms,
        it.reported_ms,
        it.lost_log_ms,
        it.silent_since_ms,
        it.back_log_ms,
        int(it.clash),
        it.spooled,
        it.conflicts,
    )


def to_node(row: Row) -> Node:
    name, since, newest, reported_log, reported, lost_log, silent_since, back_log, clash, spooled, conflicts = row
    return Node(
        name, since, newest, reported_log, reported, lost_log, silent_since, back_log, bool(clash), spooled, conflicts
    )


def sighting_row(it: Sighting) -> Row:
    alive = None if it.alive is None else int(it.alive)
    return it.attachment_id, it.generation, alive, it.gone_log_ms, it.gone_index, int(it.contested)


def to_sighting(row: Row) -> Sighting:
    alive = None if row[2] is None else bool(row[2])
    return Sighting(row[0], row[1], alive, row[3], row[4], bool(row[5]))


def silence_row(it: MassSilence) -> Row:
    return SINGLE, int(it.stands), it.since_log_ms, it.since_ms


def to_silence(row: Row) -> MassSilence:
    return MassSilence(bool(row[1]), row[2], row[3])


def boot_row(it: Boot) -> Row:
    return it.node, it.boot_id, it.order, it.since_ms


def to_boot(row: Row) -> Boot:
    return Boot(*row)


def event_row(it: Event) -> Row:
    address = None if it.address is None else to_blob(it.address)
    return (
        it.index,
        it.at_ms,
        it.kind.value,
        it.by,
        it.request_id,
        it.space,
        it.pool,
        it.pod_ref,
        it.ifname,
        address,
        it.node,
        it.detail,
        int(it.begins),
    )


def to_event(row: Row) -> Event:
    return Event(
        row[0],
        row[1],
        _KINDS[row[2]],
        row[3],
        row[4],
        row[5],
        row[6],
        row[7],
        row[8],
        _maybe_address(row[9]),
        row[10],
        row[11],
        bool(row[12]),
    )


def settings_row(it: Settings) -> Row:
    return (
        SINGLE,
        int(it.inline_pools),
        it.cooldown_s,
        it.reclaim,
        it.node_lost_s,
        it.evidence_grace_s,
        it.tombstone_s,
        it.events_days,
        it.events_max,
    )


def to_settings(row: Row) -> Settings:
    return Settings(bool(row[1]), *row[2:])


def token_row(it: Token) -> Row:
    return it.id, it.name, it.role.value, it.digest, it.created_ms, it.expires_ms, it.node, it.used_ms


def to_token(row: Row) -> Token:
    return Token(row[0], row[1], Role(row[2]), *row[3:])


def cluster_row(it: Cluster) -> Row:
    return SINGLE, it.id, it.founded_ms, it.level, it.epoch


def to_cluster(row: Row) -> Cluster:
    return Cluster(*row[1:])


def member_row(it: Member) -> Row:
    return it.name, it.member_id, it.raft, it.api, int(it.voter), it.level


def to_member(row: Row) -> Member:
    return Member(row[0], row[1], row[2], row[3], bool(row[4]), row[5])


def restored_row(it: Restored) -> Row:
    return SINGLE, it.index, it.log_ms, it.at_ms, it.backup_ms, it.cluster_id


def to_restored(row: Row) -> Restored:
    return Restored(*row[1:])


def unconfirmed_row(it: Unconfirmed) -> Row:
    return (it.pool_id,)


def to_unconfirmed(row: Row) -> Unconfirmed:
    return Unconfirmed(*row)


def disputed_row(it: Disputed) -> Row:
    return it.space, to_blob(it.address), it.node, it.container_id, it.ifname, it.pod_ref, it.since_ms


def to_disputed(row: Row) -> Disputed:
    return Disputed(row[0], from_blob(row[1]), *row[2:])


def part_row(it: StagedPart) -> Row:
    return it.import_id, it.number, it.until_log_ms, encode_findings(it.findings)


def to_part(row: Row) -> StagedPart:
    return StagedPart(row[0], row[1], row[2], decode_findings(row[3]))


def _maybe_address(blob: bytes | None) -> Address | None:
    return None if blob is None else from_blob(blob)


_NOBODY = (None,) * 5
