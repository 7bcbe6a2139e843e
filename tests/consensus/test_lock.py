"""The lock on the data directory: one process at a time, and a dead one holds nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ipamd.consensus.failures import StartRefused
from ipamd.consensus.lock import lock_data_dir

HOLD = """
import sys, time
from pathlib import Path
from ipamd.consensus.lock import lock_data_dir
with lock_data_dir(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_one_is_refused_and_may_come_after(tmp_path: Path) -> None:
    with lock_data_dir(tmp_path), pytest.raises(StartRefused, match=f"in use by another ipamd .process {os.getpid()}"):
        lock_data_dir(tmp_path).__enter__()
    with lock_data_dir(tmp_path):
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_another_process_holds_it_until_it_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StartRefused, match=f"process {holder.pid}"):
            lock_data_dir(tmp_path).__enter__()
        holder.send_signal(signal.SIGKILL)
    with lock_data_dir(tmp_path):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartRefused, match="cannot be opened"):
        lock_data_dir(tmp_path / "none").__enter__()


def test_a_lock_whose_file_was_removed_still_holds(tmp_path: Path) -> None:
    with lock_data_dir(tmp_path):
        (tmp_path / "lock").unlink()
        with pytest.raises(StartRefused, match="in use by another ipamd"), lock_data_dir(tmp_path):
            pass
    with lock_data_dir(tmp_path):
        pass
