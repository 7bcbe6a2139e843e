"""Says whether the server or agent of this container is healthy: it answers, and an ADD could be served."""

import http.client
import os
import socket
import sys

SOCKET = os.environ.get("IPAMD_SOCKET") or "/run/ipamd/cni.sock"
PATIENCE_S = 4


class NodeSocket(http.client.HTTPConnection):
    """A connection to the node socket."""

    def connect(self) -> None:
        """Open it. Raises OSError."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(SOCKET)


def main() -> str | None:
    """What is wrong; None: nothing."""
    try:
        connection = NodeSocket("localhost")
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        said = answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return f"{SOCKET} does not answer: {error}"
    return None if answer.status == http.client.OK else said


if __name__ == "__main__":
    sys.exit(main())
