"""Looking at namespaces never holds up the loop."""

from __future__ import annotations

import threading
import time

import pytest

from ipamd.service import sandboxes
from ipamd.service.sandboxes import Sandboxes


class Slow:
    """Answers at once below /run, and elsewhere when it is let."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.seen: list[tuple[str, bool]] = []

    def inode(self, path: str) -> int | None:
        own = threading.current_thread() is threading.main_thread()
        self.seen.append((path, own))
        if not own:
            self.gate.wait(5)
        return 7

    def alive(self, path: str, inode: int | None) -> bool | None:
        return None if inode is None else bool(path)


async def test_paths_in_memory_are_looked_at_at_once() -> None:
    slow = Slow()
    for path in ("/run/netns/a", "/var/run/netns/a", "/proc/7/ns/net"):
        assert await Sandboxes(slow).inode(path) == 7
    assert all(own for _, own in slow.seen)


@pytest.mark.parametrize("path", ["/mnt/share/ns", "/run/../mnt/share/ns", "relative"])
async def test_other_paths_are_looked_at_in_a_thread_and_not_for_ever(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes, "_PATIENCE_S", 0.05)
    slow = Slow()
    began = time.monotonic()
    assert await Sandboxes(slow).inode(path) is None
    assert time.monotonic() - began < 2
    slow.gate.set()
    assert await Sandboxes(slow).inode(path) == 7
    assert slow.seen == [(path, False), (path, False)]
