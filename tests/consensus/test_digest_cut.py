"""Entries behind which the state is looked at end their transaction, on every member, however many come together."""

from __future__ import annotations

from ipamd.consensus.engine import COMMAND, NO_OP, _one_transaction
from ipamd.consensus.records import Entry
from ipamd.core.commands import Expire, Origin, TakeDigest, encode_command
from ipamd.core.entries import Item, Stamp, encode_entry

ORIGIN = Origin("system", "")


def entry(index: int, *commands: TakeDigest | Expire) -> Entry:
    items = [Item(b"o" * 16, encode_command(command)) for command in commands]
    return COMMAND + encode_entry(Stamp(1, 1), items), index, 1


def test_a_transaction_ends_behind_the_first_that_takes_a_digest() -> None:
    plain, take = entry(2, Expire(ORIGIN)), entry(3, Expire(ORIGIN), TakeDigest(ORIGIN))
    nothing: Entry = (NO_OP, 1, 1)
    assert _one_transaction([nothing, plain]) == [nothing, plain]
    assert _one_transaction([nothing, plain, take, plain]) == [nothing, plain, take]
    assert _one_transaction([take, take]) == [take]
    assert _one_transaction([]) == []
