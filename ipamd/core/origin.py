"""Owns who asked for a command, and when a CNI call started."""

from __future__ import annotations

from ipamd.core.values import Value


class Origin(Value):
    """Who asked: token or socket, and the request's id. Kept with each event."""

    by: str
    request_id: str


class CallStart(Value):
    """When a CNI call started, as the plugin says it: kernel boot id and CLOCK_BOOTTIME in ns."""

    boot_id: str
    ns: int
    spooled: bool = False
