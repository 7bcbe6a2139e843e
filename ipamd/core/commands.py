"""Owns the commands: everything that can change the state, as values that carry all they need.

A command is stamped by its proposer before it enters the log; applying it reads no clock, no random source and no
environment, so that every member comes to the same state. KINDS gives each its number in the log, which is never
reused; a field is added only at the end, with a default, and a change of meaning is a new kind.
"""

from __future__ import annotations

from enum import StrEnum

from ipamd.core.addresses import Address
from ipamd.core.codec import Codec
from ipamd.core.imports import Finding
from ipamd.core.inline import InlinePool
from ipamd.core.membercommands import AddMember as AddMember  # noqa: PLC0414 - commands too, and so are these
from ipamd.core.membercommands import BindMember as BindMember  # noqa: PLC0414
from ipamd.core.membercommands import PromoteMember as PromoteMember  # noqa: PLC0414
from ipamd.core.membercommands import RemoveMember as RemoveMember  # noqa: PLC0414
from ipamd.core.model import Member, Owner, PoolDefinition, Settings, Token
from ipamd.core.nodecommands import ConfirmSilence as ConfirmSilence  # noqa: PLC0414
from ipamd.core.nodecommands import FindNodes as FindNodes  # noqa: PLC0414
from ipamd.core.nodecommands import LoseNodes as LoseNodes  # noqa: PLC0414
from ipamd.core.nodecommands import NoteRefused as NoteRefused  # noqa: PLC0414
from ipamd.core.nodecommands import Report as Report  # noqa: PLC0414
from ipamd.core.nodecommands import Seen as Seen  # noqa: PLC0414
from ipamd.core.nodecommands import SilentNode as SilentNode  # noqa: PLC0414
from ipamd.core.notecommands import Note as Note  # noqa: PLC0414
from ipamd.core.origin import CallStart as CallStart  # noqa: PLC0414 - what every command begins with
from ipamd.core.origin import Origin as Origin  # noqa: PLC0414
from ipamd.core.restorecommands import ClaimLiving as ClaimLiving  # noqa: PLC0414
from ipamd.core.restorecommands import ConfirmPool as ConfirmPool  # noqa: PLC0414
from ipamd.core.values import Value


class PoolRequest(Value):
    """One pool of an ADD: by its name, or (`inline`) by what it is; then `pool` is the name that it is made under."""

    pool: str
    inline: InlinePool | None = None
    spare_first_hosts: bool = False
    """A bridge takes the first host of each range that has no gateway: do not give it."""


class Add(Value):
    """Give a pod's interface its addresses in each pool asked for: all or nothing.

    `owner` None makes a held attachment that lasts `ttl_s` seconds (None: until released). `addresses` are those that
    the caller insists on. `call` is None for callers that are not CNI.
    """

    origin: Origin
    requests: tuple[PoolRequest, ...]
    pod_ref: str
    ifname: str
    owner: Owner | None
    call: CallStart | None = None
    pod_uid: str | None = None
    addresses: tuple[Address, ...] = ()
    pin: bool = False
    ttl_s: int | None = None
    note: str = ""


class Del(Value):
    """Let go what (node, CNI network, container, interface) holds, and leave a tombstone."""

    origin: Origin
    node: str
    cni_network: str
    container_id: str
    ifname: str
    call: CallStart | None = None


class Release(Value):
    """Release a reservation, or one interface of it, through the API.

    `container_id` and `generation` say which binding is meant: one that is not current changes nothing. Without both
    a bound attachment is refused unless `force`.
    """

    origin: Origin
    pool: str
    pod_ref: str
    ifname: str | None = None
    container_id: str | None = None
    generation: int | None = None
    force: bool = False


class ReclaimCause(StrEnum):
    """Why attachments are freed in bulk; part of the event."""

    GC = "gc"
    NODE_RELEASE = "node_release"
    SUSPECT_RELEASE = "suspect_release"
    """Frees what is still suspect when it is carried out: bound before its node's newest boot, not seen since."""

    LOST = "lost"
    """Frees what a lost node holds, where `reclaim` says so and its time has passed, unless mass silence stands."""
    UNCLAIMED = "unclaimed"
    """What an import brought and no node has claimed: a binding that has a node by now is none of it."""

    POOL_DELETE = "pool_delete"
    """Frees for good, what is held or pinned too."""


class Binding(Value):
    """One binding of an attachment, as somebody saw it."""

    attachment_id: int
    generation: int


class Reclaim(Value):
    """Free those of the bindings that are still current, on `node` (None: anywhere), and started no later than `call`.

    The proposer looked at each of them (GC: not in the list, namespace not seen alive); what changed since is kept.
    """

    origin: Origin
    cause: ReclaimCause
    node: str | None
    bindings: tuple[Binding, ...]
    call: CallStart | None = None


class CreatePool(Value):
    """Make a pool. An equal one is no error."""

    origin: Origin
    definition: PoolDefinition


class ReplacePool(Value):
    """Replace a pool's definition. `force`: holders outside every new subnet stay, stranded."""

    origin: Origin
    definition: PoolDefinition
    force: bool = False


class DropPool(Value):
    """Delete a pool. `force`: with all its reservations."""

    origin: Origin
    name: str
    force: bool = False


class SetQuarantine(Value):
    """Take an address out of use for `for_s` seconds of log time (None: until lifted)."""

    origin: Origin
    space: str
    address: Address
    for_s: int | None = None
    note: str = ""


class LiftQuarantine(Value):
    """Put a quarantined address back into use."""

    origin: Origin
    space: str
    address: Address


class RenameNode(Value):
    """Give a node another name, with all that it holds."""

    origin: Origin
    node: str
    to: str


class ForgetNode(Value):
    """Forget a node that has nothing bound: its boots and tombstones too."""

    origin: Origin
    node: str


class ChangeSettings(Value):
    """Change some of the replicated settings. None: stays as it is, whatever another change makes of it meanwhile."""

    origin: Origin
    inline_pools: bool | None = None
    cooldown_s: int | None = None
    reclaim: str | None = None
    node_lost_s: int | None = None
    evidence_grace_s: int | None = None
    tombstone_s: int | None = None
    events_days: int | None = None
    events_max: int | None = None


class PutToken(Value):
    """Create a token that ends `ttl_s` seconds after it is written (None: never).

    `enrolling`: a node fetches its own, which it can do once; a repetition with the same digest is no second one.
    """

    origin: Origin
    token: Token
    ttl_s: int | None = None
    enrolling: bool = False


class DropToken(Value):
    """Revoke a token by its id."""

    origin: Origin
    token_id: str


class NoteUses(Value):
    """Keep that tokens are in use; and drop those that ended long ago."""

    origin: Origin
    token_ids: tuple[str, ...] = ()


class Found(Value):
    """Found the cluster: its id, first settings, first members and first admin token. A second one changes nothing."""

    origin: Origin
    cluster_id: str
    settings: Settings
    members: tuple[Member, ...]
    token: Token | None = None
    token_ttl_s: int | None = None


class Expire(Value):
    """Nothing but time has passed: end holds, cooldowns, quarantines and tombstones that are due.

    Every entry does this first; the leader proposes this command when something is due and nobody else writes.
    """

    origin: Origin


class TakeDigest(Value):
    """Change nothing; each member takes the digest of its state as it is right behind this entry."""

    origin: Origin


class StageImport(Value):
    """Put a part of an import aside. Nothing else is changed; a part that is there already stays as it is."""

    origin: Origin
    import_id: str
    number: int
    findings: tuple[Finding, ...]


class FinishImport(Value):
    """Carry out an import whose parts, numbered from 0, are all staged: all of it or nothing. The parts go."""

    origin: Origin
    import_id: str
    parts: int
    pools: tuple[PoolRequest, ...]


class Claim(Value):
    """Tell bindings that are still current what an import did not know of them. What is known stays as it is."""

    origin: Origin
    bindings: tuple[Binding, ...]
    ifname: str
    node: str
    cni_network: str | None = None


Command = (
    Add
    | Del
    | Release
    | Reclaim
    | CreatePool
    | ReplacePool
    | DropPool
    | SetQuarantine
    | LiftQuarantine
    | RenameNode
    | ForgetNode
    | ChangeSettings
    | PutToken
    | DropToken
    | NoteUses
    | Found
    | Expire
    | AddMember
    | PromoteMember
    | RemoveMember
    | BindMember
    | TakeDigest
    | StageImport
    | FinishImport
    | Claim
    | Report
    | LoseNodes
    | FindNodes
    | ConfirmSilence
    | NoteRefused
    | ConfirmPool
    | ClaimLiving
    | Note
)

KINDS: dict[int, type[Command]] = {
    1: Add,
    2: Del,
    3: Release,
    4: Reclaim,
    5: CreatePool,
    6: ReplacePool,
    7: DropPool,
    8: SetQuarantine,
    9: LiftQuarantine,
    10: RenameNode,
    11: ForgetNode,
    12: ChangeSettings,
    13: PutToken,
    14: DropToken,
    15: Found,
    16: Expire,
    17: AddMember,
    18: PromoteMember,
    19: RemoveMember,
    20: BindMember,
    21: TakeDigest,
    22: StageImport,
    23: FinishImport,
    24: Claim,
    30: Report,
    31: LoseNodes,
    32: FindNodes,
    33: ConfirmSilence,
    34: NoteRefused,
    35: NoteUses,
    36: ConfirmPool,
    37: ClaimLiving,
    40: Note,
}

VERSION = 1
"""First byte of an encoded command; a node refuses to propose what the oldest member cannot apply."""

CODEC: Codec[Command] = Codec(VERSION, KINDS)

_OF_MEMBERS = frozenset({17, 18, 19, 20})
_DIGEST = bytes((VERSION, 21))


def is_configuration(data: bytes) -> bool:
    """Whether an encoded command changes the members: the log carries one such command at a time."""
    return len(data) > 1 and data[0] == VERSION and data[1] in _OF_MEMBERS


def takes_digest(data: bytes) -> bool:
    """Whether an encoded command wants the digest of the state right behind it."""
    return data[:2] == _DIGEST


def encode_command(command: Command) -> bytes:
    """A command as bytes: version, kind, fields."""
    return CODEC.encode(command)


def decode_command(data: bytes) -> Command:
    """The reverse of `encode_command`. Raises CodecError for an unknown version or kind, or damaged bytes."""
    return CODEC.decode(data)
