"""Owns slow links: every packet that reaches a host of a Network is held back for a while before it is let in.

The kernel hands packets to NFQUEUE; a thread gives its verdict on each later, in the order in which they came.
"""

from __future__ import annotations

import errno
import select
import socket
import struct
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from tests.support.netns import Network

NETLINK_NETFILTER = 12
QUEUE = 7
REQUEST, ACK, ERROR = 1, 4, 2
SUBSYSTEM = 3 << 8
PACKET, VERDICT, CONFIG = SUBSYSTEM | 0, SUBSYSTEM | 1, SUBSYSTEM | 2
CONFIG_COMMAND, CONFIG_PARAMETERS, VERDICT_HEADER, PACKET_HEADER = 1, 2, 2, 1
BIND, COPY_META, ACCEPT = 1, 1, 1
HEAD, FAMILY, ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("!BBH"), struct.Struct("=HH")


class Delays:
    """Holds the packets back that come to these hosts, each for `delay_s`, while the block lasts."""

    def __init__(self, network: Network, hosts: Iterable[str], delay_s: float) -> None:
        self._network, self._hosts, self._delay_s = network, list(hosts), delay_s
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._queues: list[_Queue] = []
        self.delayed = 0

    def __enter__(self) -> Self:
        for host in self._hosts:
            self._queues.append(self._network.within(host, _Queue))
            self._rule("-A", host)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for host in self._hosts:
            self._rule("-D", host)
        self._ending.set()
        self._thread.join()
        for queue in self._queues:
            queue.socket.close()

    def _rule(self, how: str, host: str) -> None:
        rule = ["iptables", how, "INPUT", "-i", "eth0", "-j", "NFQUEUE", "--queue-num", str(QUEUE)]
        subprocess.run(["ip", "netns", "exec", self._network.namespace(host), *rule], check=True)

    def _serve(self) -> None:
        waiting: deque[tuple[float, _Queue, int]] = deque()
        by_socket = {queue.socket: queue for queue in self._queues}
        while not self._ending.is_set() or waiting:
            pause_s = max(0.0, waiting[0][0] - time.monotonic()) if waiting else 0.05
            for ready in select.select(list(by_socket), [], [], pause_s)[0]:
                due_s = time.monotonic() + self._delay_s
                waiting.extend((due_s, by_socket[ready], number) for number in by_socket[ready].packets())
            while waiting and waiting[0][0] <= time.monotonic():
                _, queue, number = waiting.popleft()
                queue.accept(number)
                self.delayed += 1


class _Queue:
    """The queue of the namespace in which it is made. Raises OSError."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind((0, 0))
        self._configure(CONFIG_COMMAND, struct.pack("!BxH", BIND, socket.AF_INET))
        self._configure(CONFIG_PARAMETERS, struct.pack("!IB", 0, COPY_META))

    def packets(self) -> Iterable[int]:
        """The numbers of packets that came."""
        for kind, body in _messages(self.socket.recv(1 << 20)):
            if kind == PACKET:
                yield _packet_number(body[FAMILY.size :])

    def accept(self, number: int) -> None:
        """Let a packet in."""
        self.socket.send(_message(VERDICT, REQUEST, VERDICT_HEADER, struct.pack("!II", ACCEPT, number)))

    def _configure(self, attribute: int, value: bytes) -> None:
        self.socket.send(_message(CONFIG, REQUEST | ACK, attribute, value))
        ((_, body), *_) = _messages(self.socket.recv(65536))
        (code,) = struct.unpack_from("=i", body)
        if code != 0:
            raise OSError(-code, f"NFQUEUE: {errno.errorcode.get(-code)}")


def _message(kind: int, flags: int, attribute: int, value: bytes) -> bytes:
    padded = value + bytes(-len(value) % 4)
    body = FAMILY.pack(socket.AF_UNSPEC, 0, QUEUE) + ATTRIBUTE.pack(ATTRIBUTE.size + len(value), attribute) + padded
    return HEAD.pack(HEAD.size + len(body), kind, flags, 0, 0) + body


def _messages(data: bytes) -> Iterable[tuple[int, bytes]]:
    while data:
        length, kind, *_ = HEAD.unpack_from(data)
        yield kind, data[HEAD.size : length]
        data = data[length + -length % 4 :]


def _packet_number(attributes: bytes) -> int:
    while attributes:
        length, kind = ATTRIBUTE.unpack_from(attributes)
        if kind == PACKET_HEADER:
            (number,) = struct.unpack_from("!I", attributes, ATTRIBUTE.size)
            return int(number)
        attributes = attributes[length + -length % 4 :]
    raise ValueError("a packet without a number")
