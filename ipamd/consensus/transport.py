"""Owns the second seam: how messages between pysyncobj and a wire travel."""

from __future__ import annotations

from abc import abstractmethod

from pysyncobj.node import Node
from pysyncobj.transport import Transport as SyncObjTransport

from ipamd.consensus.peers import Message


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
