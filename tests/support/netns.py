"""Owns a network of its own for a test: a namespace for each host, all on one bridge, and cuts between them.

The bridge lives in a namespace too, so that nothing is seen of it outside and runs side by side do not meet. Each cut
is probed, in both directions, before a test goes on.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

NETWORK = "10.77.0"
PROBE_PORT = 9
HEARD_S, UNHEARD_S = 10.0, 0.1
CLONE_NEWNET = 0x40000000

_numbers = count(1)
_libc = ctypes.CDLL(None, use_errno=True)
T = TypeVar("T")


class FaultError(Exception):
    """A fault did not take effect, or did not end."""


class Network:
    """Hosts by name, with addresses 10.77.0.1, 10.77.0.2, ... `with` takes all of it away."""

    def __init__(self) -> None:
        self.prefix = f"ipamd-{os.getpid()}-{next(_numbers)}"
        self.addresses: dict[str, str] = {}
        self._probes: dict[str, socket.socket] = {}
        self._cuts: set[tuple[str, str]] = set()
        _ip("netns", "add", self._hub)
        _ip("-n", self._hub, "link", "add", "br0", "type", "bridge")
        _ip("-n", self._hub, "link", "set", "br0", "up")

    @property
    def _hub(self) -> str:
        return f"{self.prefix}-hub"

    def namespace(self, host: str) -> str:
        """The name of a host's namespace."""
        return f"{self.prefix}-{host}"

    def add(self, host: str) -> str:
        """One more host; its address."""
        address = f"{NETWORK}.{len(self.addresses) + 1}"
        inside = self.namespace(host)
        _ip("netns", "add", inside)
        self.addresses[host] = address
        _ip("-n", self._hub, "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", inside)
        _ip("-n", self._hub, "link", "set", host, "master", "br0", "up")
        _ip("-n", inside, "address", "add", f"{address}/24", "dev", "eth0")
        _ip("-n", inside, "link", "set", "eth0", "up")
        _ip("-n", inside, "link", "set", "lo", "up")
        self._nft(host, "add table inet cuts", "add chain inet cuts in { type filter hook input priority 0; }")
        self._probes[host] = self.within(host, lambda: _probe(address))
        return address

    def within(self, host: str, make: Callable[[], T]) -> T:
        """Call something in a host's namespace: the sockets that it makes stay there."""
        made: list[T] = []
        failed: list[OSError] = []

        def enter() -> None:
            try:
                _enter(self.namespace(host))
                made.append(make())
            except OSError as error:
                failed.append(error)

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return made[0]

    def cut(self, *ways: tuple[str, str]) -> None:
        """Drop all packets of each (source, target), one way. Raises FaultError."""
        for source, target in ways:
            self._cuts.add((source, target))
            self._nft(target, f"add rule inet cuts in ip saddr {self.addresses[source]} drop")
        self.probe()

    def isolate(self, host: str, *, hears: bool = False, is_heard: bool = False) -> None:
        """Cut a host off from all others, in both directions or in one."""
        others = [other for other in self.addresses if other != host]
        away = [] if is_heard else [(host, other) for other in others]
        self.cut(*away, *([] if hears else [(other, host) for other in others]))

    def isolate_instead(self, host: str) -> None:
        """Cut a host off in both directions, and end all other cuts: there is no moment without any. Raises FaultError."""
        others = [other for other in self.addresses if other != host]
        ways = {way for other in others for way in ((host, other), (other, host))}
        for target in (host, *others):
            rules = [f"add rule inet cuts in ip saddr {self.addresses[one]} drop" for one, to in ways if to == target]
            self._nft(target, "flush chain inet cuts in", *rules)
        self._cuts = ways
        self.probe()

    def heal(self) -> None:
        """Take all cuts away. Raises FaultError."""
        for host in {target for _, target in self._cuts}:
            self._nft(host, "flush chain inet cuts in")
        self._cuts.clear()
        self.probe()

    def probe(self) -> None:
        """Whether each way is cut or open as it should be. Raises FaultError."""
        for source, sender in self._probes.items():
            for target in self.addresses:
                if source != target:
                    self._probe_way(sender, source, target)

    def _probe_way(self, sender: socket.socket, source: str, target: str) -> None:
        is_cut, deadline_s = (source, target) in self._cuts, time.monotonic() + HEARD_S
        listener, word = self._probes[target], os.urandom(8)
        listener.settimeout(UNHEARD_S)
        while not self._is_heard(sender, listener, target, word):
            if is_cut:
                return
            if time.monotonic() > deadline_s:
                raise FaultError(f"nothing comes from {source} to {target}")
        if is_cut:
            raise FaultError(f"packets come through the cut from {source} to {target}")

    def _is_heard(self, sender: socket.socket, listener: socket.socket, target: str, word: bytes) -> bool:
        """Whether a word arrives; on a way that is open it may be lost, or late, where the machine is busy."""
        sender.sendto(word, (self.addresses[target], PROBE_PORT))
        try:
            while listener.recv(64) != word:
                pass
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Take the namespaces away. Whoever runs in one keeps it alive, unnamed."""
        for probe in self._probes.values():
            probe.close()
        for host in self.addresses:
            _ip("netns", "delete", self.namespace(host))
        _ip("netns", "delete", self._hub)

    def _nft(self, host: str, *lines: str) -> None:
        _run(["ip", "netns", "exec", self.namespace(host), "nft", "-f", "-"], lines)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _enter(namespace: str) -> None:
    """Of the calling thread. Raises OSError."""
    with Path("/run/netns", namespace).open() as place:
        if _libc.setns(place.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"no way into {namespace}")


def _probe(address: str) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((address, PROBE_PORT))
    return made


def _ip(*words: str) -> None:
    _run(["ip", *words])


def _run(command: list[str], lines: Iterable[str] = ()) -> None:
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FaultError(f"{' '.join(command)}: {done.stderr.strip()}")
