"""Owns the routes of settings and tokens."""

from __future__ import annotations

from typing import Any

from ipamd.api.exchange import Exchange, Reply, listed
from ipamd.api.query import decode_cursor
from ipamd.api.schema.admin import SettingsBody, TokenBody, show_minted, show_settings, show_token
from ipamd.api.schema.common import ListQuery, ReadQuery
from ipamd.core.model import Role


async def get_settings(exchange: Exchange[None, ReadQuery]) -> Reply:
    """The settings in force."""
    found = await exchange.services.settings.get(exchange.request)
    return Reply(found.index, show_settings(found.value))


async def put_settings(exchange: Exchange[SettingsBody, Any]) -> Reply:
    """Change settings."""
    done = await exchange.services.settings.put(exchange.body.given(), exchange.request)
    return Reply(done.index, show_settings(done.value.settings))


async def list_tokens(exchange: Exchange[None, ListQuery]) -> Reply:
    """Tokens, by id."""
    query = exchange.query
    (after,) = ("",) if query.cursor is None else decode_cursor(query.cursor, tuple[str])
    page = await exchange.services.tokens.page(after, query.limit, exchange.request)
    return listed(page, show_token, lambda token: (token.id,))


async def create_token(exchange: Exchange[TokenBody, Any]) -> Reply:
    """Make a token."""
    body = exchange.body
    body.check()
    done = await exchange.services.tokens.create(body.name, Role(body.role), body.node, body.ttl_s, exchange.request)
    return Reply(done.index, show_minted(done.value), 201)


async def revoke_token(exchange: Exchange[None, Any]) -> Reply:
    """Revoke a token."""
    done = await exchange.services.tokens.revoke(exchange.path["id"], exchange.request)
    return Reply(done.index, None, 204)
