"""Owns the sockets to listen on: TCP, and the node socket with its mode, its left-over file, or its supervisor."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

from ipamd.settings import Endpoint

BACKLOG = 1024
_PROBE_S = 2.0
_FIRST_INHERITED = 3
"""SD_LISTEN_FDS_START."""

_WORDS = {errno.EADDRINUSE: "another program listens there", errno.EACCES: "this user may not"}


class SocketError(Exception):
    """It cannot be listened there. One sentence."""


def listen_tcp(endpoint: Endpoint) -> socket.socket:
    """A listening TCP socket. Raises SocketError."""
    sock: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            endpoint.host, endpoint.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(BACKLOG)
    except OSError as error:
        if sock is not None:
            sock.close()
        raise SocketError(f"cannot listen on {endpoint}: {_why(error)}") from error
    sock.setblocking(False)
    return sock


def listen_unix(path: Path) -> socket.socket:
    """A listening unix socket of mode 0600; a file left by a dead server is replaced. Raises SocketError."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        _clear_away(path)
        with _umask(0o177):
            sock.bind(os.fspath(path))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise SocketError(f"cannot listen on the node socket {path}: {_why(error)}") from error
    except SocketError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


def inherited_unix() -> socket.socket | None:
    """The listening unix socket that a supervisor hands over (sd_listen_fds(3)); None: it hands none.

    It outlives this process: who connects between two starts waits in its queue. Raises SocketError.
    """
    count, owner = os.environ.pop("LISTEN_FDS", ""), os.environ.pop("LISTEN_PID", "")
    if not count.isdigit() or owner != str(os.getpid()):
        return None
    if count != "1":
        raise SocketError(f"{count} sockets were handed over, where one is expected: the node socket")
    sock = socket.socket(fileno=_FIRST_INHERITED)
    if sock.family != socket.AF_UNIX or not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise SocketError("the socket that was handed over is no listening unix socket")
    sock.set_inheritable(False)
    sock.setblocking(False)
    return sock


def remove_unix(path: Path) -> None:
    """Remove the file of a closed node socket, unless another server listens there by now."""
    with contextlib.suppress(OSError):
        if not _answers(path):
            path.unlink(missing_ok=True)


def _clear_away(path: Path) -> None:
    """Remove what a dead server left; refuse what is alive, or no socket."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SocketError(f"cannot listen on the node socket {path}: a file that is no socket is there")
    if _answers(path):
        raise SocketError(f"cannot listen on the node socket {path}: another server answers there")
    path.unlink()


def _answers(path: Path) -> bool:
    """Whether somebody listens. A full backlog is an answer too."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except (TimeoutError, BlockingIOError):
            return True
    return True


@contextlib.contextmanager
def _umask(mask: int) -> Iterator[None]:
    """The mode has to be right from the moment the file exists, not a moment later."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def _why(error: OSError) -> str:
    return _WORDS.get(error.errno or 0) or error.strerror or str(error)
