"""A spooled call as bytes: nothing is lost, nothing damaged is taken for a call, names keep the order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamd.core.spooled import CARRIED, Damaged, SpooledCall, decode, encode, name_of, numbers_of

CALLS = st.builds(
    SpooledCall,
    request_id=st.text(max_size=20),
    spooled_ms=st.integers(0, 2**53),
    headers=st.dictionaries(st.sampled_from(CARRIED), st.text(max_size=40)),
    body=st.binary(max_size=300),
)
CALL = SpooledCall("r1", 1_700_000_000_000, {"CNI-ContainerID": "c1", "CNI-IfName": "eth0"}, b'{"name":"net"}\n')


@given(CALLS)
def test_what_is_written_is_read(call: SpooledCall) -> None:
    assert decode(encode(call)) == call


@given(CALLS, st.data())
def test_no_flipped_byte_and_no_cut_is_taken_for_a_call(call: SpooledCall, data: st.DataObject) -> None:
    good = encode(call)
    at = data.draw(st.integers(0, len(good) - 1))
    flipped = bytearray(good)
    flipped[at] ^= data.draw(st.integers(1, 255))
    for bad in (bytes(flipped), good[:at]):
        with pytest.raises(Damaged):
            decode(bad)


def test_other_formats_are_named() -> None:
    with pytest.raises(Damaged, match="format 2, and this program knows 1"):
        decode(encode(CALL).replace(b"ipamd-spool 1", b"ipamd-spool 2", 1))


def test_only_what_is_about_the_call_is_kept() -> None:
    came = {"CNI-ContainerID": "c1", "Authorization": "Bearer x", "Ipamd-Deadline-Ms": "9", "Ipamd-Spooled": "true"}
    assert SpooledCall.of(came, b"", "r1", 5).headers == {"CNI-ContainerID": "c1"}


def test_all_that_decides_what_a_del_frees_is_kept() -> None:
    said = {
        "CNI-ContainerID": "c1",
        "CNI-IfName": "eth0",
        "CNI-Netns": "/run/netns/a",
        "CNI-Args": "A=b",
        "Ipamd-Node": "n1",
        "Ipamd-Cluster": "east",
        "Ipamd-Boot-Id": "b1",
        "Ipamd-Started": "7",
    }
    assert decode(encode(SpooledCall.of(said, b"", "r1", 5))).headers == said


def test_names_sort_as_numbers_do() -> None:
    numbers = [1, 2, 9, 10, 99, 100_000, 10**15]
    names = [name_of(number) for number in numbers]
    assert sorted(names) == names
    random.Random(1).shuffle(names)
    assert (
        numbers_of([*names, "lock", "agent.json", "0000000000000003.new", "3.del", "x0000000000000003.del"]) == numbers
    )
