"""Owns what a command answers: values, stored with the command's op id, never raised.

An outcome holds everything that its answer needs, so that a repetition under the same idempotency key is answered as
the first call was, whatever happened to the state since.
"""

from __future__ import annotations

from enum import StrEnum

from ipamd.core.addresses import Address
from ipamd.core.codec import Codec
from ipamd.core.imports import Conflict
from ipamd.core.model import Dns, Held, Pool, Quarantine, Reservation, Route, Settings, Token
from ipamd.core.restored import Disputed
from ipamd.core.values import Value


class Code(StrEnum):
    """Why something was refused: the stable codes of the interface, section 6, and CNI's own."""

    INVALID_REQUEST = "invalid_request"
    NOT_FOUND = "not_found"
    POOL_NOT_FOUND = "pool_not_found"
    RESERVATION_NOT_FOUND = "reservation_not_found"
    POOL_EXISTS = "pool_exists"
    POOL_IN_USE = "pool_in_use"
    POOL_OVERLAPS = "pool_overlaps"
    POOL_EXHAUSTED = "pool_exhausted"
    ADDRESS_TAKEN = "address_taken"
    ADDRESS_NOT_ALLOWED = "address_not_allowed"
    BOUND = "bound"
    LATE = "late"
    CONTESTED = "contested"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    MEMBER_EXISTS = "member_exists"
    LAST_MEMBER = "last_member"
    IN_CONFLICT = "in_conflict"
    ENROLLED = "enrolled"
    OLD_MEMBER = "old_member"


class Stranded(Value):
    """A holder that a changed pool would not serve again, or a deleted one would free."""

    pod_ref: str
    ifname: str
    address: Address


class Refused(Value):
    """Nothing was changed. `detail` is one sentence for people; `pool` is set where one pool is the reason."""

    code: Code
    detail: str
    pool: str | None = None
    position: int | None = None
    """POOL_EXHAUSTED: which outer entry of the pool had nothing to give."""

    stranded: tuple[Stranded, ...] = ()
    request: int | None = None
    """POOL_EXHAUSTED: which request of the ADD, from 0. Its pool may have another name than the request gives it."""


class GrantedAddress(Value):
    """An address as a CNI result tells it: with the subnet's prefix length and the range's gateway."""

    address: Address
    prefix: int
    gateway: Address | None


class Grant(Value):
    """What an ADD got in one pool; `held` are all attachments of the reservation, the ADD's own (`ifname`) too."""

    pool: str
    space: str
    ifname: str
    addresses: tuple[GrantedAddress, ...]
    routes: tuple[Route, ...]
    dns: Dns
    reservation: Reservation
    held: tuple[Held, ...]


class Granted(Value):
    """An ADD succeeded: one grant for each pool asked for, in their order. `created`: a reservation is new."""

    created: bool
    grants: tuple[Grant, ...]


class LetGo(Value):
    """An attachment that was freed, or (`held`) is kept for its pod."""

    pool: str
    pod_ref: str
    ifname: str
    node: str | None
    addresses: tuple[Address, ...]
    held: bool


class Released(Value):
    """A DEL, a release or a reclaim. `stale`: what was named is not the current binding, nothing was changed."""

    items: tuple[LetGo, ...]
    stale: bool = False


class PoolStored(Value):
    """A pool was made or replaced (or, not `created`, was there already)."""

    created: bool
    pool: Pool
    cooldown_s: int
    """The cooldown in force: the pool's own or the settings'."""

    reclaim: str
    stranded: tuple[Stranded, ...] = ()


class PoolDropped(Value):
    """A pool was deleted; `stranded` lists whom it had."""

    stranded: tuple[Stranded, ...] = ()


class Quarantined(Value):
    """An address is out of use."""

    quarantine: Quarantine


class SettingsStored(Value):
    """The settings now in force."""

    settings: Settings


class TokenStored(Value):
    """A token as it is kept: the new one, or that which the node had fetched before."""

    token: Token


class Done(Value):
    """Carried out; there is nothing to tell."""


class Confirmed(Value):
    """A pool is confirmed; not `changed`: it was so already.

    `silent` are the nodes that have not reported since the restore, `disputed` the addresses that two pods use, `left`
    the pools that are not confirmed yet.
    """

    pool: str
    changed: bool
    silent: tuple[str, ...] = ()
    disputed: tuple[Disputed, ...] = ()
    left: tuple[str, ...] = ()


class ImportedPool(Value):
    """What an import did in one pool: how many addresses it made, how many were so already or had gone since."""

    pool: str
    space: str
    created: bool
    made: int
    kept: int
    gone: int


class Imported(Value):
    """An import was carried out; or, where there are conflicts, nothing but its staged parts was changed."""

    pools: tuple[ImportedPool, ...]
    conflicts: tuple[Conflict, ...] = ()


Outcome = (
    Refused
    | Granted
    | Released
    | PoolStored
    | PoolDropped
    | Quarantined
    | SettingsStored
    | Done
    | Imported
    | TokenStored
    | Confirmed
)

KINDS: dict[int, type[Outcome]] = {
    1: Refused,
    2: Granted,
    3: Released,
    4: PoolStored,
    5: PoolDropped,
    6: Quarantined,
    7: SettingsStored,
    8: Done,
    9: Imported,
    10: TokenStored,
    12: Confirmed,
}

VERSION = 1
CODEC: Codec[Outcome] = Codec(VERSION, KINDS)


def encode_outcome(outcome: Outcome) -> bytes:
    """An outcome as bytes: version, kind, fields."""
    return CODEC.encode(outcome)


def decode_outcome(data: bytes) -> Outcome:
    """The reverse of `encode_outcome`. Raises CodecError."""
    return CODEC.decode(data)
