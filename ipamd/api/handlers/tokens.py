"""Owns the routes of tokens."""

from __future__ import annotations

from typing import Any

from ipamd.api.exchange import Exchange, Reply, listed
from ipamd.api.query import decode_cursor
from ipamd.api.schema.common import ListQuery
from ipamd.api.schema.tokens import EnrolBody, TokenBody, show_minted, show_token
from ipamd.core.model import Role


async def list_tokens(exchange: Exchange[None, ListQuery]) -> Reply:
    """Tokens, by id."""
    query = exchange.query
    (after,) = ("",) if query.cursor is None else decode_cursor(query.cursor, tuple[str])
    page = await exchange.services.tokens.page(after, query.limit, exchange.request)
    return listed(page, show_token, lambda token: (token.id,))


async def create_token(exchange: Exchange[TokenBody, Any]) -> Reply:
    """Make a token."""
    body = exchange.body
    lasts_s = body.lasts_s()
    done = await exchange.services.tokens.create(body.name, Role(body.role), body.node, lasts_s, exchange.request)
    return Reply(done.index, show_minted(done.value), 201)


async def enrol(exchange: Exchange[EnrolBody, Any]) -> Reply:
    """Make a node's own token, which it fetches once."""
    body = exchange.body
    done = await exchange.services.tokens.enrol(body.node, body.digest(), exchange.request)
    return Reply(done.index, show_minted(done.value), 201 if done.value.is_new else 200)


async def revoke_token(exchange: Exchange[None, Any]) -> Reply:
    """Revoke a token."""
    done = await exchange.services.tokens.revoke(exchange.path["id"], exchange.request)
    return Reply(done.index, None, 204)
