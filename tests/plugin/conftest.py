"""A peer that the plugin talks to, and a container runtime that runs it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.plugin import PLUGIN, Peer, Runtime


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Peer]:
    """A peer on a unix socket."""
    path = tmp_path / "cni.sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(8)
    made = Peer(listener, f"unix:{path}")
    yield made
    made.close()


@pytest.fixture
def tcp_peer() -> Iterator[Peer]:
    """A peer on a port of 127.0.0.1."""
    listener = socket.create_server(("127.0.0.1", 0))
    made = Peer(listener, f"tcp:127.0.0.1:{listener.getsockname()[1]}")
    yield made
    made.close()


@pytest.fixture
def runtime(tmp_path: Path) -> Runtime:
    assert os.access(PLUGIN, os.X_OK)
    return Runtime(tmp_path)
