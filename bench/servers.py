"""Owns the servers under test: if a measurement fails, the ends of their logs say why."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.server import Server

LAST_CHARS = 2_000


@contextmanager
def running(*folders: Path) -> Iterator[list[Server]]:
    """A running server on each folder. Their ports are chosen now, when they are about to be used."""
    servers = [Server(folder) for folder in folders]
    with ExitStack() as stack:
        try:
            yield [stack.enter_context(server) for server in servers]
        except Exception:
            for server in servers:
                print(f"The log of {server.directory} ends with:\n{server.log[-LAST_CHARS:]}", file=sys.stderr)
            raise
