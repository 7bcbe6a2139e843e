"""Starts three servers on loopback, with certificates, for trying things out; ends them at Ctrl-C.

Everything lies in a new directory below the system's temporary one, which goes in the end.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from demo.server import BIN, READY_S, UnixConnection, free_port

NAMES = ("n1", "n2", "n3")


class Member:
    """One of the three."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.folder = name, folder / name
        self.folder.mkdir()
        self.socket, self.log = self.folder / "cni.sock", self.folder / "server.log"
        self.token = self.folder / "data" / "admin.token"
        self.api, self.raft = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where its API is."""
        return f"https://{self.api}"

    def start(self, certificates: Path, peers: list[str]) -> None:
        """Start it, without waiting for anything."""
        command: list[str | Path] = [
            BIN / "ipamd", "serve", "--member-name", self.name, "--node-name", self.name,
            "--data-dir", self.folder / "data", "--socket", self.socket,
            "--listen", self.api, "--raft-listen", self.raft, *peers,
            "--tls-cert", certificates / f"{self.name}.crt", "--tls-key", certificates / f"{self.name}.key",
            "--tls-ca", certificates / "ca.crt",
        ]  # fmt: skip
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def is_ready(self) -> bool:
        """Whether it serves. Raises RuntimeError if it has ended."""
        if self.process is None or self.process.poll() is not None:
            end = "\n".join(self.log.read_text(errors="replace").splitlines()[-10:])
            raise RuntimeError(f"{self.name} has ended; its log ends with:\n{end}")
        connection = UnixConnection(self.socket)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        """Have it end, if it runs."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)


def main() -> None:
    """Run until somebody has had enough."""
    folder = Path(tempfile.mkdtemp(prefix="ipamd-cluster-"))
    members = [Member(folder, name) for name in NAMES]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        began = time.monotonic()
        start(members, folder / "tls")
        print(explain(members, folder, time.monotonic() - began), flush=True)
        while all(member.process is not None for member in members):
            time.sleep(3600)
    except KeyboardInterrupt:
        print("\nstopping")
    finally:
        stop(members)
        shutil.rmtree(folder)


def start(members: list[Member], certificates: Path) -> None:
    """Make certificates, start all, and wait until all serve. Raises RuntimeError."""
    ctl(certificates, "init")
    for member in members:
        ctl(certificates, "issue", member.name, "--dns", "localhost", "--ip", "127.0.0.1")
    peers = [text for member in members for text in ("--peer", f"{member.name}={member.raft},{member.url}")]
    for member in members:
        member.start(certificates, peers)
    deadline = time.monotonic() + READY_S
    while not all(member.is_ready() for member in members):
        if time.monotonic() > deadline:
            raise RuntimeError(f"the cluster did not get ready within {READY_S:.0f} s")
        time.sleep(0.05)


def ctl(certificates: Path, *words: str) -> None:
    """A verb of `ipamctl tls`."""
    subprocess.run([BIN / "ipamctl", "tls", *words, "--dir", certificates], check=True, stdout=subprocess.DEVNULL)


def explain(members: list[Member], folder: Path, took_s: float) -> str:
    """How to talk to them."""
    token = next(member.token for member in members if member.token.exists())
    pids = ", ".join(f"{member.name} is {member.process.pid}" for member in members if member.process is not None)
    rows = [f"  {member.name}  {member.url}  node socket {member.socket}" for member in members]
    return "\n".join([
        f"three servers run, ready after {took_s:.1f} s, all in {folder}:", *rows,
        "",
        "talk to them over TLS (paste this into another terminal):",
        f"  export PATH={BIN}:$PATH",
        f"  export IPAMCTL_SERVER='{' '.join(member.url for member in members)}'",
        f"  export IPAMCTL_CACERT={folder / 'tls' / 'ca.crt'}",
        f"  export IPAMCTL_TOKEN_FILE={token}",
        "  ipamctl cluster status",
        "  ipamctl pool create web --subnet 10.0.0.0/24",
        "  ipamctl reservation add web default/nginx",
        "or on a node socket, where no token is needed:",
        f"  ipamctl --server unix:{members[0].socket} cluster transfer {members[2].name}",
        f"kill -9 one of them ({pids}), and the others go on",
        "Ctrl-C ends all three",
    ])  # fmt: skip


def stop(members: list[Member]) -> None:
    """End all, at once where one does not end by itself."""
    for member in members:
        member.stop()
    for member in members:
        if member.process is not None:
            with suppress(subprocess.TimeoutExpired):
                member.process.wait(timeout=12)
            member.process.kill()
            member.process.wait()


if __name__ == "__main__":
    main()
