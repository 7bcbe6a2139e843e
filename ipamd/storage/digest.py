"""Owns the digest of a state: equal for the same records, whatever the tables, the file or the store they lie in.

Each record goes in by its kind's number and its fields in the byte form of core.codec, in the order of kinds and keys.
The free spans do not: they follow from the records. So members of several versions come to the same one, as long as
what a newer one knows besides has not been proposed (core.levels): its new kinds of records are not there yet.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final

from ipamd.core.changes import Record
from ipamd.core.codec import Codec
from ipamd.core.imports import StagedPart
from ipamd.core.invariants import Records
from ipamd.core.model import (
    AssignedAddress,
    Attachment,
    Boot,
    Cluster,
    Cooling,
    Cursor,
    Event,
    GenerationFloor,
    MassSilence,
    Member,
    Node,
    Pool,
    Quarantine,
    Reservation,
    Settings,
    Sighting,
    Token,
    Tombstone,
)
from ipamd.core.restored import Disputed, Restored, Unconfirmed
from ipamd.storage import statements as st
from ipamd.storage.compiled import sql
from ipamd.storage.records import SqliteRecords
from ipamd.storage.tables import ops

ENCODING: Final = 1
"""The form that records have in a digest. It is not changed: a record that needs another is a new kind."""

_STRETCH: Final = 256
"""How many parts are worked on without a rest: some 2 ms."""

_KINDS: Final[dict[int, type[Record]]] = {
    1: Pool,
    2: Reservation,
    3: Attachment,
    4: AssignedAddress,
    5: Cooling,
    6: Quarantine,
    7: Cursor,
    8: Tombstone,
    9: Node,
    10: Boot,
    11: Event,
    12: Settings,
    13: Token,
    14: Cluster,
    15: Member,
    16: GenerationFloor,
    17: StagedPart,
    30: Sighting,
    31: MassSilence,
    32: Restored,
    33: Unconfirmed,
    34: Disputed,
}
_CODEC: Final[Codec[Any]] = Codec(ENCODING, _KINDS)

_OPS: Final = sql(
    ops.select()
    .with_only_columns(ops.c.op, ops.c.fingerprint, ops.c.log_index, ops.c.expires_log_ms, ops.c.outcome)
    .order_by(ops.c.id)
)


def digest(records: Records) -> str:
    """SHA-256 over the records and counters of a state, in hex."""
    return _hex(_parts(records))


def machine_digest(connection: sqlite3.Connection, rest: Callable[[], object] = bool) -> str:
    """SHA-256 over all that decides what comes next: the records, the stored outcomes, the position in the log.

    `rest` is called now and then: a reader in a thread lets the others run there.
    """
    outcomes = connection.execute(_OPS)
    position = connection.execute(st.META)
    rows = (repr(row).encode() for row in chain(outcomes, position))
    return _hex(_resting(chain(_parts(SqliteRecords(connection)), rows), rest))


def _parts(records: Records) -> Iterator[bytes]:
    yield f"{ENCODING} {records.last_id} {records.last_event}".encode()
    for kind in _KINDS.values():
        yield from map(_CODEC.encode, records.all(kind))


def _resting(parts: Iterable[bytes], rest: Callable[[], object]) -> Iterator[bytes]:
    for number, part in enumerate(parts, 1):
        if number % _STRETCH == 0:
            rest()
        yield part


def _hex(parts: Iterable[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(4, "big") + part)
    return whole.hexdigest()
