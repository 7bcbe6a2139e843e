"""Owns the third seam: when the journal is trimmed, and how far. The state machine is the snapshot.

pysyncobj would write a dump of its own; here "serialize" makes the state machine durable and says up to where the
journal is not needed any more.
"""

from __future__ import annotations

import logging
from typing import Any

from pysyncobj.config import SERIALIZER_STATE

from ipamd.consensus.clock import Clock
from ipamd.consensus.journal import Journal
from ipamd.consensus.limits import Limits
from ipamd.core.ports import StateMachine

logger = logging.getLogger(__name__)

PAUSE_S = 5.0
"""A checkpoint that could not free anything is not tried again at once."""


class Compaction:
    """Stands where pysyncobj has its serializer. No snapshot travels in messages: who needs one fetches it."""

    def __init__(
        self,
        journal: Journal,
        machine: StateMachine,
        clock: Clock,
        limits: Limits,
        retryable: tuple[type[Exception], ...],
    ) -> None:
        self._journal = journal
        self._machine = machine
        self._clock = clock
        self._limits = limits
        self._retryable = retryable
        self._not_before_s = clock.monotonic_s()
        self._trim_to: int | None = None

    def due(self) -> bool:
        """Whether there is more in the journal than it should keep."""
        return self._journal.can_trim(self._wanted()) and self._clock.monotonic_s() >= self._not_before_s

    def checkSerializing(self) -> tuple[int, int | None]:  # noqa: N802 - pysyncobj's names
        """The index to trim to, once; pysyncobj then has the journal trimmed."""
        if self._trim_to is None:
            return SERIALIZER_STATE.NOT_SERIALIZING, None
        trim_to, self._trim_to = self._trim_to, None
        return SERIALIZER_STATE.SUCCESS, trim_to

    def serialize(self, data: Any, id_: int) -> None:  # noqa: ARG002 - pysyncobj's own dump is not wanted
        """Make the state machine durable. What it surely has need not stay in the journal."""
        self._not_before_s = self._clock.monotonic_s() + PAUSE_S
        try:
            durable = self._machine.checkpoint()
        except self._retryable as error:
            logger.warning("the journal is not trimmed: %s", error)
            return
        self._trim_to = max(min(self._wanted(), durable - 1), self._journal.first)

    def getTransmissionData(self, node: object) -> None:  # noqa: N802
        """Nothing: the message then only says that the receiver is too far behind."""

    def cancelTransmisstion(self, node: object) -> None:  # noqa: N802 - spelled so
        """Nothing was begun."""

    def _wanted(self) -> int:
        return self._journal.start_of_newest(self._limits.keep_entries, self._limits.keep_bytes)
