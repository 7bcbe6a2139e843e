"""kill -9 inside an entry: what was committed is there with its index, and nothing of what was not."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.storage.crash import ENTRIES, child, command
from tests.storage.driver import Driver


@pytest.mark.parametrize("kill_after", [2, 30, 77, 110, 133, 160])
def test_a_kill_at_a_statement_leaves_whole_entries(tmp_path: Path, kill_after: int) -> None:
    process = child(tmp_path / "crashed", kill_after)
    assert process.wait(300) == -signal.SIGKILL
    crashed, whole = Driver(tmp_path / "crashed"), Driver(tmp_path / "whole")
    applied = crashed.machine.applied[0] - 1
    assert 0 <= applied < ENTRIES
    for number in range(applied):
        whole.log_ms += 100
        whole.run(*command(number))
    assert crashed.digest() == whole.digest()
    assert crashed.examine() == []
    crashed.log_ms, crashed.ops = whole.log_ms, whole.ops
    for driver in (crashed, whole):
        driver.log_ms += 100
        driver.run(*command(applied))
    assert crashed.digest() == whole.digest()
    crashed.close()
    whole.close()
