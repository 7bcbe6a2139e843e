"""What a newer version put into the log or beside the state is refused where it is read, and nothing is changed by it."""

from __future__ import annotations

import pytest

from ipamd.core.commands import Expire, Origin, encode_command
from ipamd.core.entries import Item, encode_entry
from ipamd.core.levels import NewerEntry
from ipamd.core.ports import LogEntry
from tests.storage.driver import Driver
from tests.storage.pods import pool

EXPIRE = encode_command(Expire(Origin("test", "r")))
OP = bytes(16)


def entry(driver: Driver, command: bytes) -> bytes:
    return encode_entry(driver.stamp, [Item(OP, command)])


def refused(driver: Driver, data: bytes) -> str:
    before = driver.digest()
    index = driver.machine.applied[0] + 1
    with pytest.raises(NewerEntry, match="start the newer version of ipamd that wrote it") as found:
        driver.machine.apply([LogEntry(index, 1, data)])
    assert (driver.digest(), driver.machine.applied[0]) == (before, index - 1)
    return str(found.value)


def test_an_entry_of_a_newer_format(driver: Driver) -> None:
    data = entry(driver, EXPIRE)
    assert "log entry of format 2" in refused(driver, b"\x02" + data[1:])


def test_a_command_of_a_newer_format(driver: Driver) -> None:
    assert "format version 2, this program reads 1" in refused(driver, entry(driver, b"\x02" + EXPIRE[1:]))


def test_a_command_of_a_newer_kind(driver: Driver) -> None:
    assert "unknown kind 200" in refused(driver, entry(driver, b"\x01\xc8[]"))


def test_a_command_with_a_field_more(driver: Driver) -> None:
    """It would be left out, and the members would come to different states."""
    assert "damaged" in refused(driver, entry(driver, EXPIRE[:-1] + b',"more"]'))


def test_a_kept_answer_of_a_newer_format(driver: Driver) -> None:
    item = driver.item(pool("p", "192.0.2.0/24"), OP)
    driver.apply(item)
    ((outcome,),) = driver.rows("SELECT outcome FROM ops")
    assert isinstance(outcome, bytes)
    driver.rows("UPDATE ops SET outcome = ?", b"\x02" + outcome[1:])
    index = driver.machine.applied[0] + 1
    with pytest.raises(NewerEntry, match="format version 2"):
        driver.machine.apply([LogEntry(index, 1, encode_entry(driver.stamp, [item]))])
