"""Owns the replicated settings: reading and changing them, and what values they may have."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from ipamd.core.commands import PutSettings
from ipamd.core.model import Settings as Values
from ipamd.core.outcomes import SettingsStored
from ipamd.service.proposer import Proposer
from ipamd.service.reader import Reader
from ipamd.service.request import At, Request


class Settings:
    """The use cases of the settings that decide what is allocated or freed."""

    def __init__(self, proposer: Proposer, reader: Reader) -> None:
        self._proposer, self._reader = proposer, reader
        self._changing = asyncio.Lock()

    async def get(self, request: Request) -> At[Values]:
        """The settings in force. Raises Unavailable."""
        return await self._reader.read(lambda snapshot: snapshot.settings(), request)

    async def put(self, given: dict[str, Any], request: Request) -> At[SettingsStored]:
        """Change the settings that are given; the others stay. Raises ApiError, Unavailable.

        One change after the other, or each of two at once would put back what the other has just changed.
        """
        async with self._changing:
            now = await self.get(request)
            command = PutSettings(request.origin, replace(now.value, **given))
            return await self._proposer.carry_out(command, request, SettingsStored)
