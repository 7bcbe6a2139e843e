"""Owns wall clocks that jump: each member of a cluster gets one that a test can move while it runs."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

from tests.support.cluster import Cluster, MemberServer

SOURCE = Path(__file__).with_name("skew.c")
USUAL_S = 2 * 86400
"""How far all clocks are before the true one: certificates that are made now are old enough then for one to go back."""


class Clocks:
    """The clocks of members that are not started yet. Raises CalledProcessError where no compiler is."""

    def __init__(self, cluster: Cluster) -> None:
        library = cluster.directory / "skew.so"
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
        for member in cluster:
            self.jump(member, 0)
            member.environment = {"LD_PRELOAD": str(library), "SKEW_FILE": str(self._file(member))}

    def jump(self, member: MemberServer, to_s: int) -> None:
        """Have a member's clock be so many seconds before or (-) behind the others' from now on."""
        with self._file(member).open("r+b" if self._file(member).exists() else "wb", buffering=0) as file:
            file.write(struct.pack("<q", (USUAL_S + to_s) * 10**9))

    @staticmethod
    def _file(member: MemberServer) -> Path:
        return member.directory / "skew"
