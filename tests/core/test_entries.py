"""The byte form of log entries: a stamp and a batch of commands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamd.core.codec import CodecError
from ipamd.core.entries import (
    KEEP_INTERNAL_MS,
    OP_BYTES,
    Entry,
    Item,
    Stamp,
    decode_entry,
    decode_stamp,
    encode_entry,
)

stamps = st.builds(Stamp, st.integers(0, 2**63), st.integers(0, 2**63), st.just(0))
items = st.builds(
    Item,
    st.binary(min_size=OP_BYTES, max_size=OP_BYTES),
    st.binary(max_size=300),
    st.binary(max_size=32),
    st.integers(0, 2**32 - 1),
)


@given(stamps, st.lists(items, max_size=5))
def test_an_entry_reads_back_as_it_was(stamp: Stamp, batch: list[Item]) -> None:
    data = encode_entry(stamp, batch)
    assert decode_entry(data) == Entry(stamp, tuple(batch))
    assert decode_stamp(data) == stamp


@given(stamps, st.lists(items, max_size=5))
def test_items_say_how_much_they_take(stamp: Stamp, batch: list[Item]) -> None:
    bare = len(encode_entry(stamp, []))
    assert len(encode_entry(stamp, batch)) == bare + sum(item.size_bytes for item in batch)


@given(stamps, st.lists(items, min_size=1, max_size=3), st.data())
def test_a_cut_entry_is_refused_or_ends_with_a_whole_command(
    stamp: Stamp, batch: list[Item], data: st.DataObject
) -> None:
    whole = encode_entry(stamp, batch)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    try:
        entry = decode_entry(cut)
    except CodecError:
        return
    assert entry.items == tuple(batch[: len(entry.items)])
    assert len(encode_entry(entry.stamp, entry.items)) == len(cut)


@given(st.binary(max_size=120))
def test_any_bytes_are_an_entry_or_refused(data: bytes) -> None:
    for first in (b"", b"\x01"):
        try:
            read: object = decode_entry(first + data)
        except CodecError as error:
            read = str(error)
        assert read


def test_another_format_is_named() -> None:
    data = encode_entry(Stamp(1, 2), [])
    with pytest.raises(CodecError, match="format 2, this program reads 1"):
        decode_entry(b"\x02" + data[1:])
    with pytest.raises(CodecError, match="format none"):
        decode_stamp(b"")


def test_the_bytes_are_what_they_were() -> None:
    data = encode_entry(Stamp(258, 3), [Item(b"o" * 16, b"\x01\x10[]", b"fp", 5)])
    assert data.hex() == "01" + "0201000000000000" + "0300000000000000" + "6f" * 16 + "05000000" + "02" + "04000000" + (
        b"fp\x01\x10[]".hex()
    )
    assert Item(b"o" * 16, b"").keep_ms == KEEP_INTERNAL_MS == 600_000
