"""The byte form of commands and outcomes: nothing is lost, and what is not of the format is refused as such."""

from __future__ import annotations

import contextlib
import json
import types
from enum import StrEnum
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamd.core import commands, outcomes
from ipamd.core.addresses import Address
from ipamd.core.codec import Codec, CodecError
from ipamd.core.commands import Add, Command, Expire, Origin, Release, decode_command, encode_command
from ipamd.core.outcomes import Done, Outcome, decode_outcome, encode_outcome
from ipamd.core.values import Value

COMMAND_KINDS = {
    "Add": 1,
    "Del": 2,
    "Release": 3,
    "Reclaim": 4,
    "CreatePool": 5,
    "ReplacePool": 6,
    "DropPool": 7,
    "SetQuarantine": 8,
    "LiftQuarantine": 9,
    "RenameNode": 10,
    "ForgetNode": 11,
    "ChangeSettings": 12,
    "PutToken": 13,
    "DropToken": 14,
    "Found": 15,
    "Expire": 16,
    "AddMember": 17,
    "PromoteMember": 18,
    "RemoveMember": 19,
    "BindMember": 20,
    "TakeDigest": 21,
    "StageImport": 22,
    "FinishImport": 23,
    "Claim": 24,
    "Report": 30,
    "LoseNodes": 31,
    "FindNodes": 32,
    "ConfirmSilence": 33,
    "NoteRefused": 34,
    "NoteUses": 35,
    "ConfirmPool": 36,
    "ClaimLiving": 37,
    "Note": 40,
}
"""Written down once more: a log that is on disk knows a command by its number."""

OUTCOME_KINDS = {
    "Refused": 1,
    "Granted": 2,
    "Released": 3,
    "PoolStored": 4,
    "PoolDropped": 5,
    "Quarantined": 6,
    "SettingsStored": 7,
    "Done": 8,
    "Imported": 9,
    "TokenStored": 10,
    "Confirmed": 12,
}

SIMPLE: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-(2**130), 2**130),
    str: st.text(max_size=8),
    bool: st.booleans(),
    bytes: st.binary(max_size=40),
}


def anything(kind: Any) -> st.SearchStrategy[Any]:
    """Any value of an annotated type."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return st.one_of(*(st.none() if one is type(None) else anything(one) for one in arguments))
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(anything(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(anything, arguments))
    if issubclass(kind, StrEnum):
        return st.sampled_from(list(kind))
    hints = get_type_hints(kind)
    names = kind.__struct_fields__ if issubclass(kind, Value) else kind._fields
    return st.builds(kind, *(anything(hints[name]) for name in names))


def damaged(data: bytes) -> st.SearchStrategy[bytes]:
    """Bytes cut short, with one of them changed, or with some put in."""
    at = st.integers(0, len(data) - 1)
    return st.one_of(
        at.map(lambda end: data[:end]),
        st.tuples(at, st.integers(0, 255)).map(lambda it: data[: it[0]] + bytes((it[1],)) + data[it[0] + 1 :]),
        st.tuples(at, st.binary(max_size=6)).map(lambda it: data[: it[0]] + it[1] + data[it[0] :]),
    )


some_command: st.SearchStrategy[Command] = st.one_of(*map(anything, commands.KINDS.values()))
some_outcome: st.SearchStrategy[Outcome] = st.one_of(*map(anything, outcomes.KINDS.values()))


@given(some_command)
def test_a_command_reads_back_as_it_was(command: Command) -> None:
    again = decode_command(encode_command(command))
    assert again == command
    assert repr(again) == repr(command)


@given(some_outcome)
def test_an_outcome_reads_back_as_it_was(outcome: Outcome) -> None:
    again = decode_outcome(encode_outcome(outcome))
    assert again == outcome
    assert repr(again) == repr(outcome)


def test_the_numbers_of_kinds_never_change() -> None:
    assert {kind.__name__: number for number, kind in commands.KINDS.items()} == COMMAND_KINDS
    assert {kind.__name__: number for number, kind in outcomes.KINDS.items()} == OUTCOME_KINDS
    assert (commands.VERSION, outcomes.VERSION) == (1, 1)


def test_every_kind_is_listed() -> None:
    assert set(commands.KINDS.values()) == set(get_args(Command))
    assert set(outcomes.KINDS.values()) == set(get_args(Outcome))


def test_the_bytes_of_a_command_are_what_they_were() -> None:
    command = Release(Origin("token:ops", "r1"), "p", "t/ä", generation=3)
    assert encode_command(command) == b'\x01\x03[["token:ops","r1"],"p","t/\xc3\xa4",null,null,3,false]'


@pytest.mark.parametrize(
    "data", [b"", b"\x01", b"\x02\x10[]", b"\x00\x10[]", b"\x01\x00[]", b"\x01\xff[]", b"\x01\x10"]
)
def test_another_version_an_unknown_kind_or_too_few_bytes(data: bytes) -> None:
    with pytest.raises(CodecError):
        decode_command(data)
    with pytest.raises(CodecError):
        decode_outcome(data)


@pytest.mark.parametrize(
    "row",
    ["", "{}", "3", "null", '"ab"', "[]", "[[]]", "[NaN]", "[{}]", "[[1,2,3]]", "\udc80", "9" * 5000, "[" * 99_999],
)
def test_damaged_fields_of_a_command(row: str) -> None:
    with pytest.raises(CodecError):
        decode_command(bytes((1, COMMAND_KINDS["Expire"])) + row.encode("utf-8", "surrogateescape"))


@given(st.data())
def test_damaged_bytes_never_raise_anything_else(data: st.DataObject) -> None:
    for decode, original in (
        (decode_command, encode_command(data.draw(some_command))),
        (decode_outcome, encode_outcome(data.draw(some_outcome))),
    ):
        with contextlib.suppress(CodecError):
            decode(data.draw(damaged(original)))


@given(some_command)
def test_fields_that_came_later_take_their_defaults(command: Command) -> None:
    """Bytes of an older program end before the fields it did not know."""
    row = json.loads(encode_command(command)[2:])
    known = msgspec.structs.fields(type(command))
    required = sum(field.required for field in known)
    older = bytes((1, COMMAND_KINDS[type(command).__name__])) + json.dumps(row[:required]).encode()
    again = decode_command(older)
    for at, one in enumerate(known):
        expected = getattr(command, one.name) if at < required else one.default
        assert getattr(again, one.name) == expected


def test_a_field_without_default_may_not_be_missing() -> None:
    whole = encode_command(Add(Origin("a", "b"), (), "t/a", "eth0", None))
    row = json.loads(whole[2:])
    with pytest.raises(CodecError, match="damaged"):
        decode_command(whole[:2] + json.dumps(row[:4]).encode())
    with pytest.raises(CodecError, match="damaged"):
        decode_command(whole[:2] + json.dumps([*row, 1]).encode())


def test_a_value_of_no_listed_kind_is_a_mistake_of_the_program() -> None:
    small: Codec[Any] = Codec(1, {1: Done})
    with pytest.raises(KeyError):
        small.encode(Expire(Origin("a", "b")))


def test_a_type_without_byte_form_is_found_when_the_codec_is_made() -> None:
    class Odd(StrEnum):
        A = "a"

    with pytest.raises(TypeError, match="has no byte form"):
        Codec(1, {1: _record(value=int | str)})
    assert Codec(1, {1: _record(value=Odd | None)})


def test_addresses_of_128_bits_are_exact() -> None:
    address = Address(6, 2**128 - 1)
    command = Add(Origin("a", "b"), (), "t/a", "eth0", None, addresses=(address,))
    again = decode_command(encode_command(command))
    assert isinstance(again, Add)
    assert again.addresses == (address,)
    assert isinstance(again.addresses[0], Address)


def _record(**hints: Any) -> Any:
    return msgspec.defstruct("Record", list(hints.items()), bases=(Value,))
