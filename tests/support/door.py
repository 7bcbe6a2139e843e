"""Owns a slow way to a node socket: it stands before the real one and holds calls and answers back."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from pathlib import Path
from typing import Self


class SlowDoor:
    """A unix socket in front of another. Each call waits for `wait_s`, a part of it on its way in, the rest on its way out.

    What a caller has sent is delivered whether the caller still lives or not, as a network would.
    """

    def __init__(self, path: Path, behind: Path, wait_s: float, seed: int) -> None:
        self.address, self.wait_s = f"unix:{path}", wait_s
        self._behind, self._random = behind, random.Random(seed)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            in_s = self._random.uniform(0, self.wait_s)
            self._threads.append(threading.Thread(target=self._pass, args=(caller, in_s, self.wait_s - in_s)))
            self._threads[-1].start()

    def _pass(self, caller: socket.socket, in_s: float, out_s: float) -> None:
        with caller, contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as server:
            request = _request(caller)
            time.sleep(in_s)
            server.connect(str(self._behind))
            server.sendall(request)
            answer = b"".join(iter(lambda: server.recv(65536), b""))
            time.sleep(out_s)
            caller.sendall(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(30)
        self._listener.close()


def _request(caller: socket.socket) -> bytes:
    """One request, by its length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(caller)
    head, _, body = data.partition(b"\r\n\r\n")
    left = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]) - len(body)
    while left > 0:
        some = _some(caller)
        data, left = data + some, left - len(some)
    return data


def _some(sock: socket.socket) -> bytes:
    some = sock.recv(65536)
    if not some:
        raise ConnectionResetError
    return some
