"""Owns a cluster whose members have a network namespace each: they can be cut off from each other."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from tests.support.certificates import Shop
from tests.support.cluster import BIN, Away, Cluster, MemberServer
from tests.support.netns import Network
from tests.support.server import READY_ANSWER_S

CLIENT = "client"


class LabMember(MemberServer):
    """One server, in a namespace of its own. It is asked over its node socket: that needs no network."""

    def __init__(self, directory: Path, *flags: str, name: str, shop: Shop, network: Network) -> None:
        super().__init__(directory, *flags, name=name, shop=shop, host=network.add(name))
        self.port, self.raft_port = 7480, 7481
        self.within = ["ip", "netns", "exec", network.namespace(name)]

    def command(self) -> list[str]:
        """The command line that starts it; `ip` becomes the server, under the same process id."""
        return [*self.within, *super().command()]

    def is_ready(self) -> bool:
        """Whether `/readyz` answers 200 now."""
        with suppress(Away):
            return self.ask("GET", "/readyz", timeout_s=READY_ANSWER_S).status == 200
        return False


class Lab(Cluster):
    """A cluster on a network that can be cut; a host `client` is on it too."""

    def __init__(self, directory: Path, size: int = 3, *flags: str) -> None:
        self.network = Network()
        try:
            super().__init__(directory, size, *flags)
            self.network.add(CLIENT)
        except BaseException:
            self.network.close()
            raise

    def build(self, directory: Path, *flags: str, name: str) -> MemberServer:
        """A server for a directory, on a new host."""
        return LabMember(directory, *flags, name=name, shop=self.shop, network=self.network)

    def remote(self, token: Path, *words: str, timeout_s: float = 120.0) -> subprocess.CompletedProcess[str]:
        """Run ipamctl on the host `client`, over the network."""
        within = ["ip", "netns", "exec", self.network.namespace(CLIENT)]
        command = [*within, str(BIN / "ipamctl"), "--cacert", str(self.shop.ca), "--token-file", str(token), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout_s)

    def revive(self) -> None:
        """No cuts; all run and are ready."""
        self.network.heal()
        super().revive()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            self.network.close()

    def agrees(self) -> bool:
        """Whether all members name one digest, of one index."""
        members = self.any().ask("GET", "/v1/cluster").json["members"]
        (digest, *others) = {(member["digest_index"], member["digest"]) for member in members}
        return not others and None not in digest
