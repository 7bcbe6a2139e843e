"""Owns wall clocks that jump: each member of a cluster gets one that a test can move while it runs."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from tests.support.cluster import Cluster, MemberServer

SOURCE = Path(__file__).with_name("skew.c")


class Clocks:
    """The clocks of members that are not started yet. Raises CalledProcessError where no compiler is."""

    def __init__(self, cluster: Cluster) -> None:
        library = cluster.directory / "skew.so"
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
        for member in cluster:
            self.jump(member, 0)
            member.environment = {"LD_PRELOAD": str(library), "SKEW_FILE": str(self._file(member))}

    def jump(self, member: MemberServer, to_s: int) -> None:
        """Have a member's clock go so many seconds before (-) or after the true one from now on."""
        with self._file(member).open("r+b" if self._file(member).exists() else "wb", buffering=0) as file:
            file.write(struct.pack("<q", to_s * 10**9))

    @staticmethod
    def _file(member: MemberServer) -> Path:
        return member.directory / "skew"
