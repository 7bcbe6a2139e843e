"""Owns what the tests of a whole member share: one on a directory or a simulated disk, and commands for it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from ipamd.consensus.clock import Clock
from ipamd.consensus.files import Files, OsFiles
from ipamd.consensus.limits import Limits
from ipamd.consensus.node import RaftNode
from ipamd.core.entries import Item
from ipamd.core.outcomes import Refused
from ipamd.core.ports import Answer
from ipamd.system import SystemClock
from tests.consensus.listmachine import Full, ListMachine

PATIENCE_S = 30.0
"""How long a test waits for what must come: a guard against a hang, and longer than a busy machine's disk takes."""

_numbers = count(1)


def item(command: bytes = b"command", op: bytes | None = None, fingerprint: bytes = b"") -> Item:
    return Item(op or next(_numbers).to_bytes(16, "big"), command, fingerprint)


def place(answer: Answer) -> int:
    """The place in the list that a command was answered with."""
    assert isinstance(answer.outcome, Refused)
    return int(answer.outcome.detail)


class Member:
    """A node with its machine, and the sentences with which it asked to be ended."""

    def __init__(
        self,
        directory: Path,
        *,
        files: Files | None = None,
        clock: Clock | None = None,
        limits: Limits | None = None,
        machine: ListMachine | None = None,
    ) -> None:
        self.machine = machine or ListMachine()
        self.fatal: list[str] = []
        self.node = RaftNode(
            name="n1",
            directory=directory / "journal",
            machine=self.machine,
            files=files or OsFiles(),
            clock=clock or SystemClock(),
            chance=random.Random(1),
            fatal=self.fatal.append,
            limits=limits,
            retryable=(Full,),
        )

    async def until_fatal(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            while not self.fatal:  # noqa: ASYNC110 - the Raft thread adds to it
                await asyncio.sleep(0.005)
        return self.fatal[0]


@asynccontextmanager
async def running(
    directory: Path,
    *,
    files: Files | None = None,
    clock: Clock | None = None,
    limits: Limits | None = None,
    machine: ListMachine | None = None,
) -> AsyncIterator[Member]:
    """A member that is ready, stopped at the end."""
    member = Member(directory, files=files, clock=clock, limits=limits, machine=machine)
    await member.node.start()
    try:
        await member.node.wait_ready(PATIENCE_S)
        yield member
    finally:
        await member.node.stop()
