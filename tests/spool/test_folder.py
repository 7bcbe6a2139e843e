"""The files of the spool: durable before anybody hears of it, in order over restarts, bounded, and of one process."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ipamd.core.spooled import Damaged, SpooledCall, SpoolError
from ipamd.spool import folder
from ipamd.spool.folder import Folder


def call(name: str) -> SpooledCall:
    return SpooledCall(name, 5, {"CNI-ContainerID": name}, b"{}")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Folder]]:
    made: list[Folder] = []

    def make(most: int = 100) -> Folder:
        while made:
            made.pop().close()
        made.append(Folder(tmp_path / "var" / "spool", most))
        return made[-1]

    yield make
    for one in made:
        one.close()


def held(spool: Folder) -> list[str]:
    return [spool.read(number).request_id for number in spool.numbers]


def test_order_outlives_restarts(opened: Callable[..., Folder]) -> None:
    spool = opened()
    assert spool.put([call("a"), call("b")]) == [None, None]
    assert spool.put([call("c")]) == [None]
    spool.drop(spool.numbers[0])
    again = opened()
    assert held(again) == ["b", "c"]
    again.put([call("d")])
    assert held(opened()) == ["b", "c", "d"]


def test_everything_is_for_its_user_alone(opened: Callable[..., Folder]) -> None:
    spool = opened()
    spool.put([call("a")])
    for path in (spool.path, spool.refused):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in spool.path.glob("*.del")} == {0o600}


def test_a_full_spool_takes_no_more_until_one_goes(opened: Callable[..., Folder]) -> None:
    spool = opened(most=3)
    results = spool.put([call(name) for name in "abcde"])
    assert results[:3] == [None, None, None]
    assert all("3 calls wait in the spool" in str(one) for one in results[3:])
    spool.drop(spool.numbers[0])
    assert spool.put([call("f")]) == [None]
    assert held(spool) == ["b", "c", "f"]


def test_each_file_and_the_directory_are_synced_before_it_counts(
    opened: Callable[..., Folder], monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = opened()
    synced: list[str] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    spool.put([call("a"), call("b")])
    assert [Path(name).suffix for name in synced] == [".new", ".new", ""]
    assert synced[-1] == str(spool.path)


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_what_a_failed_sync_may_have_lost_is_not_kept(
    opened: Callable[..., Folder], monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Two files, then the directory: the n-th sync fails."""
    spool = opened()
    count = 0
    real = os.fsync

    def fsync(handle: int) -> None:
        nonlocal count
        count += 1
        if count == failing:
            raise OSError(errno.EIO, "Input/output error")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    results = spool.put([call("a"), call("b")])
    failed = {1: [True, False], 2: [False, True], 3: [True, True]}[failing]
    assert [result is not None for result in results] == failed
    kept = [name for name, gone in zip("ab", failed, strict=True) if not gone]
    assert held(spool) == kept
    assert held(opened()) == kept


def test_what_a_crash_left_unfinished_is_cleared_away(opened: Callable[..., Folder]) -> None:
    spool = opened()
    spool.put([call("a")])
    (spool.path / "0000000000000002.new").write_bytes(b"half")
    again = opened()
    assert held(again) == ["a"]
    assert list(again.path.glob("*.new")) == []


def test_two_processes_cannot_share_it(opened: Callable[..., Folder]) -> None:
    spool = opened()
    with pytest.raises(SpoolError, match="in use by another ipamd"):
        Folder(spool.path)


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match=r"the spool .*file/spool cannot be used: Not a directory"):
        Folder(tmp_path / "file" / "spool")


def test_a_refused_call_is_kept_with_its_reason(opened: Callable[..., Folder]) -> None:
    spool = opened()
    spool.put([call("a"), call("b")])
    number = spool.numbers[0]
    spool.refuse(number, "unknown node")
    assert held(spool) == ["b"]
    assert sorted(path.name for path in spool.refused.iterdir()) == [f"{number:016d}.del", f"{number:016d}.why"]
    assert (spool.refused / f"{number:016d}.why").read_text() == "unknown node\n"
    spool.drop(spool.numbers[0])
    again = opened()
    again.put([call("c")])
    assert again.numbers[0] > number, "a number in use among the refused is not given twice"


def test_refused_calls_are_bounded(opened: Callable[..., Folder], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "MOST_REFUSED", 2)
    spool = opened()
    spool.put([call(name) for name in "abc"])
    for number in list(spool.numbers):
        spool.refuse(number, "no")
    assert len(list(spool.refused.glob("*.del"))) == len(list(spool.refused.glob("*.why"))) == 2


def test_damaged_and_missing_files_are_told_apart_from_calls(opened: Callable[..., Folder]) -> None:
    spool = opened()
    spool.put([call("a"), call("b")])
    first, second = spool.numbers
    (spool.path / f"{first:016d}.del").write_bytes(b"rubbish")
    (spool.path / f"{second:016d}.del").unlink()
    for number in (first, second):
        with pytest.raises(Damaged):
            spool.read(number)


def test_what_is_not_its_own_is_let_alone(opened: Callable[..., Folder]) -> None:
    spool = opened()
    spool.put([call("a")])
    for name in ("notes.txt", "1.del", "copy of 0000000000000001.del", "x.new"):
        (spool.path / name).write_text("mine")
    (spool.path / "later.new").mkdir()
    again = opened()
    assert held(again) == ["a"]
    assert {"notes.txt", "1.del", "x.new", "later.new"} <= {one.name for one in again.path.iterdir()}


def test_the_last_number_is_not_the_end(opened: Callable[..., Folder]) -> None:
    """Whoever put a file with the highest number there must not make those that come later invisible."""
    spool = opened()
    spool.put([call("a")])
    (spool.path / f"{spool.numbers[0]:016d}.del").rename(spool.path / "9999999999999999.del")
    again = opened()
    again.put([call("b"), call("c")])
    assert held(opened()) == ["a", "b", "c"]


def test_a_call_is_put_away_before_its_reason(opened: Callable[..., Folder]) -> None:
    """A disk that is full takes the one and not the other; a restart must not deliver it again."""
    spool = opened()
    spool.put([call("a")])
    (spool.refused / f"{spool.numbers[0]:016d}.why").mkdir()
    with pytest.raises(SpoolError, match="cannot be put into"):
        spool.refuse(spool.numbers[0], "no")
    assert held(opened()) == []


FULL = """
import sys
from pathlib import Path
from ipamd.core.spooled import SpooledCall, SpoolError
from ipamd.spool.folder import Folder

spool, kept, said = Folder(Path(sys.argv[1]) / "spool"), [], ""
while not said:
    name = f"c{len(kept)}"
    (error,) = spool.put([SpooledCall(name, 5, {"CNI-ContainerID": name}, bytes(3000))])
    said = str(error or "")
    kept += [] if error else [name]
print(said)
assert "No space left on device" in said, said
assert len(kept) > 20
try:
    spool.refuse(spool.numbers[0], "no")  # its reason finds no room, it is put away all the same
except SpoolError as error:
    print(error)
for number in list(spool.numbers)[:5]:
    spool.drop(number)
assert spool.put([SpooledCall("last", 5, {"CNI-ContainerID": "last"}, bytes(3000))]) == [None]
spool.close()
again = Folder(spool.path)
assert [again.read(number).request_id for number in again.numbers] == [*kept[6:], "last"]
assert not list(again.path.glob("*.new"))
"""


@pytest.mark.needs_root
def test_a_full_disk_loses_nothing_that_was_kept_and_takes_calls_again(tmp_path: Path) -> None:
    mount = 'mount -t tmpfs -o size=256k none "$1" && exec "$2" -c "$3" "$1"'
    subprocess.run(
        ["unshare", "--mount", "sh", "-c", mount, "sh", str(tmp_path), sys.executable, FULL], check=True, timeout=240
    )
