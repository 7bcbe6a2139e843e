"""Owns the second seam: how messages between members travel. A member without peers has nobody to talk to."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from pysyncobj.node import Node
from pysyncobj.transport import Transport as SyncObjTransport

Message = dict[str, Any]


class Transport(SyncObjTransport):
    """What the engine needs: pysyncobj's interface, and that acknowledgements wait for the disk."""

    def __init__(self) -> None:
        super().__init__(None, None, [])  # type: ignore[no-untyped-call]

    @abstractmethod
    def send(self, node: Node, message: Message) -> bool:
        """Send a message, or hold it back until `flush`; whether that may have worked."""

    @abstractmethod
    def flush(self) -> None:
        """Send what was held back: the journal is on the disk now."""


class LoneTransport(Transport):
    """The transport of a member without peers: a message to anybody is a fault of the program."""

    def send(self, node: Node, message: Message) -> bool:
        """Never called in a cluster of one."""
        raise RuntimeError(f"a {message['type']} message to {node} from a member that has no peers")

    def flush(self) -> None:
        """Nothing is ever held back."""
