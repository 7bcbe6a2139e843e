"""Owns one real node agent in a folder of its own: started, killed without warning."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from demo.server import BIN, READY_S, UnixConnection


class Agent:
    """`ipamd agent` for a node, in front of a server. It reports every second, so that nobody has to wait."""

    def __init__(self, folder: Path, node: str, server: str) -> None:
        folder.mkdir()
        self.node, self.socket, self.token_file = node, folder / "cni.sock", folder / "token"
        self._log, self._spool, self._server = folder / "agent.log", folder / "spool", server
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> list[str]:
        """The command that starts it."""
        return [
            "ipamd", "agent", "--server", self._server, "--node-name", self.node, "--token-file", str(self.token_file),
            "--socket", str(self.socket), "--spool-dir", str(self._spool),
            "--heartbeat-every-s", "1", "--report-every-s", "1",
        ]  # fmt: skip

    def start(self, token: str) -> None:
        """Start it and wait until its socket answers. Raises RuntimeError."""
        self.token_file.touch(mode=0o600)
        self.token_file.write_text(token)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([BIN / self.command[0], *self.command[1:]], stdout=log, stderr=log)
        began = time.monotonic()
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() - began > READY_S:
                raise RuntimeError(
                    f"the agent did not start; its log:\n{self._log.read_text(errors='replace')[-2000:]}"
                )
            time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def _answers(self) -> bool:
        connection = UnixConnection(self.socket)
        try:
            connection.request("GET", "/livez")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()
