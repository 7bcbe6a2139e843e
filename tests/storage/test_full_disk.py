"""A disk that runs full in the midst of an entry: nothing of it is kept, and it goes on once there is room."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = 'mount -t tmpfs -o size=4m none "$1" && exec "$2" -m tests.storage.full_disk "$1"'


@pytest.mark.needs_root
def test_a_full_disk_is_survived(tmp_path: Path) -> None:
    """The small file system is mounted in a mount namespace of its own, and goes with it."""
    command = ["unshare", "--mount", "sh", "-c", SCRIPT, "sh", str(tmp_path), sys.executable]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, check=False, cwd=root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
