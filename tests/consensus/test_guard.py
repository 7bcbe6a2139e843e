"""The way to pysyncobj: only the audited file, no pickle in reach, and nothing patched that others use."""

from __future__ import annotations

import importlib
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ipamd.consensus import guard
from ipamd.consensus.failures import StartRefused
from tests.consensus.journals import ManualClock, open_journal
from tests.consensus.simdisk import SimDisk


def load() -> ModuleType:
    return guard.load(lambda: open_journal(SimDisk()), ManualClock(), random.Random(0))


def test_the_installed_file_is_the_audited_one() -> None:
    path, source = guard.audited_source()
    assert path.name == "syncobj.py"
    assert source == path.read_bytes()


def test_another_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "AUDITED_SHA256", "0" * 64)
    with pytest.raises(StartRefused, match=r"is not the file of pysyncobj 0\.3\.17"):
        load()


def test_each_member_has_a_module_of_its_own_and_the_shared_one_stays() -> None:
    shared: Any = importlib.import_module(guard.MODULE)
    before = shared.pickle, shared.monotonicTime, shared.createJournal
    one, other = load(), load()
    assert one is not other
    assert one.monotonicTime is not other.monotonicTime
    assert (shared.pickle, shared.monotonicTime, shared.createJournal) == before


def test_pickle_is_out_of_reach() -> None:
    module = load()
    for name in ("loads", "dumps", "load", "dump", "to_bytes"):
        with pytest.raises(RuntimeError, match=f"pickle.{name} was called"):
            getattr(module.pickle, name)
    reachable = {getattr(value, "__module__", "") for value in vars(module).values() if callable(value)}
    assert not {name for name in reachable if "pickle" in name}


@pytest.mark.parametrize("command", [b"\x00cos\nsystem\n(S'false'\ntR.", b"\x02x", b"\x03x"])
def test_no_command_reaches_pickle(command: bytes) -> None:
    """pysyncobj's own way to apply a command unpickles it: even that is stopped."""
    raft = load().SyncObj(None, [], load().SyncObjConf(autoTick=False), transport=_Nobody())
    if command[:1] == b"\x02":
        with pytest.raises(RuntimeError, match="pickle"):
            raft._SyncObj__parseChangeClusterRequest(command)
    else:
        with pytest.raises(RuntimeError, match="pickle"):
            raft._SyncObj__doApplyCommand(command)


class _Nobody:
    ready = True

    def __getattr__(self, name: str):
        return lambda *_: None


def test_the_operating_system_is_not_asked_for_time_or_chance() -> None:
    """Only in an interpreter of its own can the modules that ask be counted."""
    program = "import ipamd.consensus.node, ipamd.consensus.facts, ipamd.consensus.lock"
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=root, check=True)
    clock = ManualClock(5.0)
    module = guard.load(lambda: open_journal(SimDisk()), clock, random.Random(0))
    assert module.monotonicTime() == 5.0
    clock.now_s = 6.0
    assert module.monotonicTime() == 6.0
    assert module.random.random() == random.Random(0).random()
