"""Owns what decisions read of tokens: a part of `ports.View`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ipamd.core.model import Token


class TokenView(Protocol):
    """The tokens as a decision may see them."""

    def token(self, token_id: str) -> Token | None:
        """A token by its id."""

    def token_of_digest(self, digest: bytes) -> Token | None:
        """The token whose secret has this SHA-256: there is at most one."""

    def tokens_of_node(self, node: str) -> Sequence[Token]:
        """The tokens that are bound to a node, by id."""

    def ended_tokens(self, until_ms: int, limit: int) -> Sequence[Token]:
        """Up to `limit` tokens that had expired at `until_ms` (wall clock), the earliest first (ties: by id)."""
