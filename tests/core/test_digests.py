"""When a state is looked at, and what differing digests mean."""

from __future__ import annotations

import pytest

from ipamd.core.commands import CODEC, Expire, Origin, TakeDigest, encode_command, takes_digest
from ipamd.core.digests import Verdict, ends_transaction, judge
from ipamd.core.entries import Item, Stamp, encode_entry

ORIGIN = Origin("system", "\x01\x15")


def entry(*commands: bytes) -> bytes:
    return encode_entry(Stamp(1, 2), [Item(b"o" * 16, command) for command in commands])


def test_an_entry_with_a_digest_ends_its_transaction() -> None:
    take, other = encode_command(TakeDigest(ORIGIN)), encode_command(Expire(ORIGIN))
    assert takes_digest(take)
    assert not takes_digest(other)
    assert ends_transaction(entry(take))
    assert ends_transaction(entry(other, take, other))
    assert not ends_transaction(entry(other))
    assert not ends_transaction(entry(b"\x02\x01\x15"))
    assert not ends_transaction(entry())
    assert CODEC.decode(take) == TakeDigest(ORIGIN)


@pytest.mark.parametrize(
    ("digests", "members", "verdict"),
    [
        ({"n1": "a"}, "n1", Verdict.EQUAL),
        ({"n1": "a", "n2": "a", "n3": "a"}, "n1 n2 n3", Verdict.EQUAL),
        ({"n1": "a", "n2": "a"}, "n1 n2 n3", Verdict.EQUAL),
        ({"n1": "a", "n2": "b", "n3": "b"}, "n1 n2 n3", Verdict.OWN_IS_WRONG),
        ({"n1": "b", "n2": "a", "n3": "b"}, "n1 n2 n3", Verdict.OTHER_IS_WRONG),
        ({"n1": "a", "n2": "b"}, "n1 n2 n3", Verdict.SPLIT),
        ({"n1": "a", "n2": "b"}, "n1 n2", Verdict.SPLIT),
        ({"n1": "a", "n2": "b", "n3": "c"}, "n1 n2 n3", Verdict.SPLIT),
        ({"n1": "a", "n2": "b", "n3": "b"}, "n1 n2 n3 n4 n5", Verdict.SPLIT),
        ({"n1": "a", "n2": "b", "n3": "b", "n4": "b"}, "n1 n2 n3 n4 n5", Verdict.OWN_IS_WRONG),
        ({"n1": "a", "n9": "b"}, "n1 n2 n3", Verdict.EQUAL),
    ],
)
def test_a_majority_of_all_members_decides(digests: dict[str, str], members: str, verdict: Verdict) -> None:
    assert judge("n1", digests, members.split()) is verdict
