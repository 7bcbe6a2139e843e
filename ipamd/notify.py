"""Owns the word to systemd that the service is ready (sd_notify(3)); a no-op where nobody asked for it."""

from __future__ import annotations

import contextlib
import os
import socket


def notify(state: str) -> None:
    """Send one state, such as `READY=1`, to the socket that NOTIFY_SOCKET names."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        sock.connect(address)
        sock.sendall(state.encode())
