"""Owns random histories: commands over few pools, pods and addresses, so that they meet in every way."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from ipamd.core.addresses import Address, parse_address
from ipamd.core.commands import (
    Add,
    Binding,
    CallStart,
    ChangeSettings,
    Claim,
    Command,
    ConfirmSilence,
    CreatePool,
    Del,
    DropPool,
    DropToken,
    Expire,
    FindNodes,
    FinishImport,
    ForgetNode,
    Found,
    LiftQuarantine,
    LoseNodes,
    NoteUses,
    PoolRequest,
    PutToken,
    Reclaim,
    ReclaimCause,
    Release,
    RenameNode,
    ReplacePool,
    Report,
    Seen,
    SetQuarantine,
    SilentNode,
    StageImport,
)
from ipamd.core.imports import Finding
from ipamd.core.inline import InlinePool, Limits, inline_name
from ipamd.core.intervals import normalise
from ipamd.core.model import Dns, Member, Owner, PoolDefinition, Role, Route, Settings, Strategy, Token
from tests.core.world import ORIGIN, definition, range_of


class Step(NamedTuple):
    """One entry: how long after the one before, and its commands."""

    after_ms: int
    commands: tuple[Command, ...]


PODS = st.sampled_from(["t/a", "t/b", "t/c", "_/n1/c9"])
CONTAINERS = st.sampled_from(["c1", "c2", "c3", "c9"])
IFNAMES = st.sampled_from(["eth0", "net1"])
NODES = st.sampled_from(["n1", "n1", "n2"])
POOLS = st.sampled_from(["p", "q", "r"])
SPACES = st.sampled_from(["default", "default", "blue"])
SECONDS = st.sampled_from([0, 1, 5, 60])

_RANGES = (
    range_of("192.0.2.0/29"),
    range_of("192.0.2.0/29", "192.0.2.3", gateway="192.0.2.6"),
    range_of("192.0.2.0/28", exclude=("192.0.2.5-192.0.2.6", "192.0.2.6", "198.51.100.1"), gateway="192.0.2.1"),
    range_of("192.0.2.8/30"),
    range_of("192.0.2.16/31"),
    range_of("2001:db8::/125"),
    range_of("2001:db8::/64", "2001:db8::2", "2001:db8::6", gateway="fe80::1"),
    range_of("2001:db8::/126"),
)
_TEXTS = [f"192.0.2.{number}" for number in range(1, 12)] + [f"2001:db8::{number}" for number in range(1, 7)]
ADDRESSES: st.SearchStrategy[Address] = st.sampled_from([parse_address(text) for text in _TEXTS])

DNS = st.sampled_from([Dns(), Dns(("192.0.2.53",), "a.example", ("b.example",), ("ndots:2",))])
ROUTES = st.sampled_from([(), (Route(range_of("198.51.100.0/24").subnet),), (Route(_RANGES[5].subnet, None),)])
SETS = st.lists(
    st.lists(st.sampled_from(_RANGES), min_size=1, max_size=2, unique=True).map(tuple), min_size=1, max_size=2
)


@st.composite
def definitions(draw: st.DrawFn) -> PoolDefinition:
    sets = [tuple(one for one in inner if one.family == inner[0].family) for inner in draw(SETS)]
    return definition(
        draw(POOLS),
        *sets,
        space=draw(SPACES),
        routes=draw(ROUTES),
        dns=draw(DNS),
        strategy=draw(st.sampled_from(Strategy)),
        cooldown_s=draw(st.sampled_from([0, 3, 60, None])),
        cooldown_min_s=draw(st.sampled_from([0, 2])),
        hold_s=draw(st.sampled_from([0, 0, 4, -1])),
        reclaim=draw(st.sampled_from([None, "never", "after:60"])),
        allow_overlap=draw(st.booleans()),
        labels=draw(st.sampled_from([(), (("rack", "r1"), ("é", ""))])),
        inline=draw(st.booleans()),
    )


def _call() -> st.SearchStrategy[CallStart | None]:
    calls = st.builds(CallStart, st.sampled_from(["b1", "b2"]), st.integers(1, 9), st.booleans())
    return st.none() | calls


_OWNERS = st.builds(
    Owner,
    CONTAINERS,
    st.none() | NODES,
    st.none() | st.just("k"),
    st.none() | st.just("/run/n"),
    st.none() | st.just(9),
)
_LIMITS = st.sampled_from(
    [Limits(one.subnet, one.first, one.last, normalise(one.excludes), one.gateway) for one in _RANGES[:6]]
)
_SOME_LIMITS = st.lists(_LIMITS, min_size=1, max_size=2).map(
    lambda limits: tuple(one for one in limits if one.subnet.family == limits[0].subnet.family)
)


def _described(space: str, limits: tuple[Limits, ...], spare: bool) -> PoolRequest:
    inline = InlinePool(space, limits)
    return PoolRequest(inline_name(space, inline.subnets), inline, spare)


_NAMED = st.builds(PoolRequest, POOLS, st.none(), st.sampled_from([False, False, True]))
_REQUEST = _NAMED | _NAMED | st.builds(_described, SPACES, _SOME_LIMITS, st.booleans())
_REQUESTS = st.lists(_REQUEST, min_size=1, max_size=2, unique=True).map(tuple)

_FEW_ADDRESSES = st.lists(ADDRESSES, min_size=1, max_size=2, unique=True).map(tuple)

ADDS = st.builds(
    Add,
    st.just(ORIGIN),
    _REQUESTS,
    PODS,
    IFNAMES,
    st.integers(0, 5).flatmap(lambda chance: _OWNERS if chance else st.none()),
    _call(),
    st.sampled_from([None, None, "u1", "u2"]),
    st.integers(0, 5).flatmap(lambda chance: st.just(()) if chance else _FEW_ADDRESSES),
    st.sampled_from([False, False, True]),
    st.sampled_from([None, 5]),
    st.sampled_from(["", "note"]),
)
_NO_CALL: st.SearchStrategy[CallStart | None] = st.none()
DELS = st.builds(Del, st.just(ORIGIN), NODES, st.just("k"), CONTAINERS, IFNAMES, _NO_CALL | _call())
_WHOLE = st.builds(Release, st.just(ORIGIN), POOLS, PODS, force=st.just(True))
RELEASES = _WHOLE | st.builds(
    Release, st.just(ORIGIN), POOLS, PODS, st.none() | IFNAMES, st.none() | CONTAINERS, st.none() | st.integers(1, 3)
)
_BINDINGS = st.lists(st.builds(Binding, st.integers(4, 20), st.integers(1, 2)), max_size=4).map(tuple)
RECLAIMS = st.builds(Reclaim, st.just(ORIGIN), st.sampled_from(ReclaimCause), st.none() | NODES, _BINDINGS, _call())
_SEEN = st.lists(
    st.builds(
        Seen,
        st.integers(2, 12),
        st.integers(1, 3),
        st.sampled_from([True, None, False, False]),
        st.just("k"),
        st.none() | IFNAMES,
    ),
    max_size=4,
).map(tuple)
REPORTS = st.builds(
    Report,
    st.just(ORIGIN),
    NODES,
    st.sampled_from([None, "b1", "b1", "b2"]),
    st.integers(0, 12),
    _SEEN,
    st.integers(0, 1),
    st.integers(0, 1),
)
_SILENT = st.lists(st.builds(SilentNode, NODES, st.just(5)), min_size=1, max_size=2, unique_by=lambda it: it.node)
LOSSES = st.one_of(
    st.builds(LoseNodes, st.just(ORIGIN), _SILENT.map(tuple), st.lists(NODES, max_size=2).map(tuple)),
    st.builds(FindNodes, st.just(ORIGIN), st.lists(NODES, max_size=2).map(tuple)),
    st.just(ConfirmSilence(ORIGIN)),
)
_TOKENS = st.builds(
    Token,
    st.sampled_from(["t1", "t2"]),
    st.just("name"),
    st.sampled_from(Role),
    st.sampled_from([bytes(32), b"\1" * 32]) | st.binary(min_size=32, max_size=32),
    st.just(1),
    st.none() | st.just(2),
    st.none() | NODES,
)
_SETTINGS = st.builds(Settings, cooldown_s=SECONDS, tombstone_s=SECONDS, events_max=st.sampled_from([5_000_000]))
_MEMBERS = (Member("m1", "id-1", "127.0.0.1:7481", "http://127.0.0.1:7480"),)

_SELDOM = st.one_of(
    st.builds(ReplacePool, st.just(ORIGIN), definitions(), st.booleans()),
    st.builds(DropPool, st.just(ORIGIN), POOLS, st.booleans()),
    st.builds(SetQuarantine, st.just(ORIGIN), SPACES, ADDRESSES, st.none() | SECONDS, st.just("why")),
    st.builds(LiftQuarantine, st.just(ORIGIN), SPACES, ADDRESSES),
    st.builds(RenameNode, st.just(ORIGIN), NODES, st.sampled_from(["n1", "n4"])),
    st.builds(ForgetNode, st.just(ORIGIN), NODES),
    st.builds(
        ChangeSettings,
        st.just(ORIGIN),
        cooldown_s=SECONDS,
        tombstone_s=SECONDS,
        evidence_grace_s=SECONDS,
        node_lost_s=SECONDS,
    ),
    st.builds(PutToken, st.just(ORIGIN), _TOKENS, st.none() | SECONDS, st.booleans()),
    st.builds(NoteUses, st.just(ORIGIN), st.lists(st.sampled_from(["t1", "t2", "t3"]), max_size=3).map(tuple)),
    st.builds(DropToken, st.just(ORIGIN), st.sampled_from(["t1", "t2"])),
    st.builds(Found, st.just(ORIGIN), st.just("cluster"), _SETTINGS, st.just(_MEMBERS), st.none() | _TOKENS),
    st.just(Expire(ORIGIN)),
)
_OPEN_PODS = st.sampled_from(["t/a", "t/b", "t/c", "_/n1/c9", "_//c1", "_//c2"])
_FINDINGS = st.builds(
    Finding,
    st.sampled_from([0, 1, 2, 3, 3, 3]),
    ADDRESSES,
    st.sampled_from(["somewhere", "elsewhere"]),
    _OPEN_PODS,
    st.none() | IFNAMES,
    st.none() | CONTAINERS,
    st.none() | NODES,
    st.none() | st.just("k"),
)
_INLINE = InlinePool("default", (Limits(_RANGES[2].subnet, _RANGES[2].first, _RANGES[2].last),))
_IMPORTED = (*(PoolRequest(name) for name in ("p", "q", "r")), PoolRequest("192.0.2.0-28", _INLINE))
_STAGES = st.builds(
    StageImport,
    st.just(ORIGIN),
    st.sampled_from(["i1", "i2"]),
    st.sampled_from([0, 0, 0, 1]),
    st.lists(_FINDINGS, min_size=1, max_size=2).map(tuple),
)
_FINISHES = st.builds(
    FinishImport, st.just(ORIGIN), st.sampled_from(["i1", "i2"]), st.sampled_from([1, 1, 2]), st.just(_IMPORTED)
)
_CLAIMS = st.builds(Claim, st.just(ORIGIN), _BINDINGS, IFNAMES, NODES, st.none() | st.just("k"))
_IMPORTS = st.one_of(_STAGES, _STAGES, _FINISHES, _FINISHES, _CLAIMS)
_INLINE_ADDS = st.builds(
    Add, st.just(ORIGIN), st.just((_IMPORTED[3],)), PODS, IFNAMES, _OWNERS, _call(), st.none(), st.just(())
)
_OFTEN = {0: _SELDOM, 1: RELEASES, 2: RECLAIMS, 3: st.builds(CreatePool, st.just(ORIGIN), definitions())}
_OFTEN |= {4: _IMPORTS, 5: _IMPORTS, 6: _INLINE_ADDS, 7: REPORTS, 8: REPORTS | LOSSES}
"""What one draw of eighteen leads to; the rest are ADDs and DELs, without which nothing has an address."""


@st.composite
def _commands(draw: st.DrawFn) -> Command:
    chance = draw(st.integers(0, 17))
    command: Command = draw(_OFTEN.get(chance, ADDS if chance < 14 else DELS))
    return command


_WHOLE_IMPORTS = st.builds(
    lambda stage: (stage, FinishImport(ORIGIN, stage.import_id, stage.number + 1, _IMPORTED)), _STAGES
)
_FEW = st.lists(_commands(), min_size=1, max_size=3).map(tuple)
STEPS = st.builds(
    Step,
    st.sampled_from([0, 1, 1_000, 5_000, 70_000]),
    st.integers(0, 7).flatmap(lambda chance: _FEW if chance else _WHOLE_IMPORTS),
)
BEGINNING = Step(
    1,
    (
        CreatePool(ORIGIN, definition("p", range_of("192.0.2.0/29"), cooldown_s=3)),
        CreatePool(ORIGIN, definition("q", range_of("192.0.2.0/28"), range_of("2001:db8::/125"), allow_overlap=True)),
        CreatePool(ORIGIN, definition("r", range_of("192.0.2.8/30"), cooldown_s=60, space="blue", hold_s=4)),
    ),
)
HISTORIES = st.lists(STEPS, min_size=6, max_size=24).map(lambda steps: [BEGINNING, *steps])
