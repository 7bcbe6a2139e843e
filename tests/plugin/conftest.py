"""A peer that the plugin talks to, and a container runtime that runs it: the Python one and the static one."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipamctl.cni.place import place
from ipamctl.cni.static import compilers, static_plugin
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


@pytest.fixture(scope="session")
def static_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The static plugin, compiled for this machine."""
    program = tmp_path_factory.mktemp("static") / "ipamd"
    place(static_plugin(), program)
    return program


@pytest.fixture(params=["python", "static"])
def runtime(request: pytest.FixtureRequest, tmp_path: Path) -> Runtime:
    """A container runtime with one of the two plugins."""
    if request.param == "static":
        if not compilers() and os.environ.get("CI") != "true":
            pytest.skip("needs a C compiler (Debian: gcc, libc6-dev)")
        return Runtime(tmp_path, request.getfixturevalue("static_program"))
    assert os.access(PLUGIN, os.X_OK)
    return Runtime(tmp_path)
