"""Owns looking at the network namespaces of pods from the loop, which must never wait for a file system."""

from __future__ import annotations

import asyncio
import posixpath

from ipamd.service.ports import Namespaces

_QUICK = ("/var/run/", "/run/", "/proc/")
"""Where runtimes keep namespaces: in memory, so that a look takes microseconds."""

_PATIENCE_S = 1.0


class Sandboxes:
    """The network namespaces of this host's pods."""

    def __init__(self, namespaces: Namespaces) -> None:
        self._namespaces = namespaces

    async def inode(self, path: str) -> int | None:
        """The inode at a namespace's path; None where it cannot be seen, or not soon."""
        if posixpath.normpath(path).startswith(_QUICK):
            return self._namespaces.inode(path)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await asyncio.to_thread(self._namespaces.inode, path)
        except TimeoutError:
            return None
