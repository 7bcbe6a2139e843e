"""Owns the replicated settings: reading and changing them, and what values they may have."""

from __future__ import annotations

from typing import Any

from ipamd.core.commands import ChangeSettings
from ipamd.core.model import Settings as Values
from ipamd.core.outcomes import SettingsStored
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request


class Settings:
    """The use cases of the settings that decide what is allocated or freed."""

    def __init__(self, proposer: Proposer, reader: Reader) -> None:
        self._proposer, self._reader = proposer, reader

    async def get(self, request: Request) -> At[Values]:
        """The settings in force. Raises Unavailable."""
        return await self._reader.read(lambda snapshot: snapshot.settings(), request)

    async def put(self, given: dict[str, Any], request: Request) -> At[SettingsStored]:
        """Change the settings that are given; the others stay. Raises ApiError, Unavailable."""
        return await self._proposer.carry_out(ChangeSettings(request.origin, **given), request, SettingsStored)
