"""Owns what a decision wants written: whole records put or dropped, in order.

A change is a value, so that memory, SQLite and tests can each carry it out and be compared. `Occupy` and `Vacate` say
that an address left or joined the free space of its address space; they carry no state of their own (who occupies it
is in the records) and exist so that a store can keep an index of what is free without looking twice.
"""

from __future__ import annotations

from ipamd.core.addresses import Address
from ipamd.core.imports import StagedPart
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
from ipamd.core.values import Value

Record = (
    Pool
    | Reservation
    | Attachment
    | AssignedAddress
    | Cooling
    | Quarantine
    | Cursor
    | GenerationFloor
    | Tombstone
    | Node
    | Boot
    | Event
    | Settings
    | Token
    | Cluster
    | Member
    | StagedPart
    | Sighting
    | MassSilence
    | Restored
    | Unconfirmed
    | Disputed
)


class Put(Value):
    """Write a record; one with the same key is replaced."""

    record: Record


class Drop(Value):
    """Remove a record, given as it is stored.

    A Pool: its ranges, cursors, floor and the mark that it is unconfirmed go with it.
    An Attachment: its sighting goes with it.
    What cools keeps the id of a pool that is gone: the address still waits in its space.
    """

    record: Record


class Occupy(Value):
    """An address is free no longer, in every range of its space."""

    space: str
    address: Address


class Vacate(Value):
    """Nothing occupies an address any more: every range of its space that gives it may hand it out."""

    space: str
    address: Address


Change = Put | Drop | Occupy | Vacate
