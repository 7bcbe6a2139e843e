"""Owns the log lines about refused requests: one each, unless there are so many that the log would say nothing else."""

from __future__ import annotations

import logging
from typing import Final

from aiohttp import web

from ipamd.api.buckets import Buckets, Rate
from ipamd.errors import ApiError
from ipamd.service.ports import Clock

_log = logging.getLogger("ipamd.api")

LINES: Final = Rate(20, 200)


class RefusalLog:
    """The lines of one listener."""

    def __init__(self, clock: Clock) -> None:
        self._lines, self._untold = Buckets(LINES, clock), 0

    def note(self, request: web.Request, error: ApiError, by: str, request_id: str) -> None:
        """Tell of a refusal; of those that there was no line for, how many."""
        if self._lines.take(error.row.code):
            self._untold += 1
            return
        who = {"by": by, "from": request.remote or "socket", "request_id": request_id}
        what = {"method": request.method, "path": request.path, "status": error.row.status, "code": error.row.code}
        more = {"untold": self._untold} if self._untold else {}
        self._untold = 0
        _log.info("request refused: %s", error.detail, extra={**what, **who, **more})
