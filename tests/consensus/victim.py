"""Owns a process to be killed: one member under load, which prints each command once it was acknowledged."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from tests.consensus.members import item, running

CLIENTS = 32


async def main(directory: Path, name: str) -> None:
    async with running(directory) as member:

        async def client(number: int) -> None:
            for turn in range(1_000_000):
                command = f"{name}-{number}-{turn}".encode()
                await member.node.propose(item(command, op=os.urandom(16)), 10)
                os.write(1, command + b"\n")

        await asyncio.gather(*[client(number) for number in range(CLIENTS)])


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
