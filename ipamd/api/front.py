"""Owns what answers need of the process that gives them, be it a server or an agent."""

from __future__ import annotations

from typing import Protocol

from ipamd.service.answers import Answers
from ipamd.service.calls import Calls
from ipamd.service.ports import Clock, Facts, Random


class Front(Protocol):
    """A process that answers on sockets: `ipamd.service.Services` is one."""

    @property
    def random(self) -> Random:
        """For the ids of requests that have none."""

    @property
    def clock(self) -> Clock:
        """For deadlines."""

    @property
    def facts(self) -> Facts:
        """Who it is."""

    @property
    def calls(self) -> Calls:
        """The last CNI calls."""

    @property
    def answers(self) -> Answers:
        """How many requests were answered how."""

    def applied(self) -> int:
        """The log index that an answer of its own reflects."""
