"""Owns the talk to a container runtime over CRI: the few calls that a kubelet makes for a pod's network.

The messages are written and read by hand: five small ones do not need a protobuf compiler and its generated modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import grpc

Value = str | bytes | int
READY = 0
DeadlineError = grpc.StatusCode.DEADLINE_EXCEEDED


@dataclass(frozen=True)
class Pod:
    """A pod as the kubelet names it; `attempt` counts its sandboxes."""

    name: str
    uid: str
    attempt: int = 0
    namespace: str = "e2e"

    @property
    def ref(self) -> str:
        """Its name in ipamd."""
        return f"{self.namespace}/{self.name}"


def message(*fields: tuple[int, Value]) -> bytes:
    """A protobuf message of strings, messages (as bytes) and numbers."""
    return b"".join(_field(number, value) for number, value in fields)


def _field(number: int, value: Value) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    return bytes((value,)) if value < 128 else bytes((value & 127 | 128,)) + _varint(value >> 7)


def fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a message, in their order; fixed-size ones are left out."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte, at = data[at], at + 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == 0:
            yield number, varint()
        elif kind == 2:
            size = varint()
            at += size
            yield number, data[at - size : at]
        else:
            at += 8 if kind == 1 else 4


def text(data: bytes, *path: int) -> str:
    """The string at a path of field numbers; empty where there is none."""
    for number in path:
        data = next((found for at, found in fields(data) if at == number and isinstance(found, bytes)), b"")
    return data.decode()


class Cri:
    """A client of the runtime behind a socket."""

    def __init__(self, socket: Path, cgroup: str) -> None:
        self.channel, self._cgroup = grpc.insecure_channel(f"unix:{socket}"), cgroup

    def call(self, method: str, request: bytes = b"", timeout_s: float = 120.0) -> bytes:
        """One call. Raises grpc.RpcError."""
        answer: bytes = self.channel.unary_unary(f"/runtime.v1.RuntimeService/{method}")(request, timeout=timeout_s)
        return answer

    def run(self, pod: Pod, timeout_s: float = 120.0) -> str:
        """RunPodSandbox: the id of the new sandbox. Raises grpc.RpcError."""
        metadata = message((1, pod.name), (2, pod.uid), (3, pod.namespace), (4, pod.attempt))
        config = message((1, metadata), (2, pod.name), (8, message((1, self._cgroup))))
        return text(self.call("RunPodSandbox", message((1, config)), timeout_s), 1)

    def stop(self, sandbox: str) -> None:
        """StopPodSandbox: the DEL."""
        self.call("StopPodSandbox", message((1, sandbox)))

    def remove(self, sandbox: str) -> None:
        """RemovePodSandbox."""
        self.call("RemovePodSandbox", message((1, sandbox)))

    def address(self, sandbox: str) -> str:
        """The address that the runtime knows of a sandbox."""
        return text(self.call("PodSandboxStatus", message((1, sandbox))), 1, 5, 1)

    def sandboxes(self) -> list[str]:
        """The ids of all that the runtime lists."""
        items = [found for at, found in fields(self.call("ListPodSandbox")) if at == 1]
        return [text(item, 1) for item in items if isinstance(item, bytes)]

    def is_ready(self) -> bool:
        """Whether the runtime and its network are ready."""
        try:
            status = self.call("Status", timeout_s=10.0)
        except grpc.RpcError:
            return False
        (conditions,) = (found for at, found in fields(status) if at == 1 and isinstance(found, bytes))
        states = [dict(fields(found)).get(2, 0) for _, found in fields(conditions) if isinstance(found, bytes)]
        return bool(states) and all(states)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()
