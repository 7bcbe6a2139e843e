"""Owns reading small files of this host from the loop, which must never wait for a file system."""

from __future__ import annotations

import asyncio

from ipamd.errors import ApiError
from ipamd.service.ports import Texts

_PATIENCE_S = 1.0


class HostFiles:
    """Files that a configuration names, as this host has them."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts

    async def text(self, path: str, what: str) -> str:
        """The text of a file; `what` is how an error calls it. Raises ApiError."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await asyncio.to_thread(self._texts, path)
        except TimeoutError:
            reason = "its file system does not answer"
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
        raise ApiError("invalid_request", f"{what} {path} cannot be read: {reason}")
