"""Owns the routes of settings."""

from __future__ import annotations

from typing import Any

from ipamd.api.exchange import Exchange, Reply
from ipamd.api.schema.admin import SettingsBody, show_settings
from ipamd.api.schema.common import ReadQuery


async def get_settings(exchange: Exchange[None, ReadQuery]) -> Reply:
    """The settings in force."""
    found = await exchange.services.settings.get(exchange.request)
    return Reply(found.index, show_settings(found.value))


async def put_settings(exchange: Exchange[SettingsBody, Any]) -> Reply:
    """Change settings."""
    done = await exchange.services.settings.put(exchange.body.given(), exchange.request)
    return Reply(done.index, show_settings(done.value.settings))
