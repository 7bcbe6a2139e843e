"""Owns times as people give them and read them: RFC 3339, local time, or so long ago."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

_AGO: Final = re.compile(r"-(?=\d)(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)
_UNITS: Final = ("weeks", "days", "hours", "minutes", "seconds")


class TimeType(click.ParamType[datetime]):
    """A time; without an offset from UTC it is local."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The time, in the local time zone."""
        try:
            return value if isinstance(value, datetime) else read_time(value, datetime.now(UTC))
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is no time: say 2026-11-24T09:00:00Z, '2026-11-24 09:00' or -7d", param, ctx)


def read_time(text: str, now: datetime) -> datetime:
    """A time in the local time zone. Raises ValueError, OverflowError."""
    ago = _AGO.fullmatch(text)
    if ago is not None:
        lengths = {unit: int(number) for unit, number in zip(_UNITS, ago.groups(), strict=True) if number}
        return (now - timedelta(**lengths)).astimezone()
    return datetime.fromisoformat(text).astimezone()


def as_asked(at: datetime) -> str:
    """A time as the API takes it."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def as_local(at: datetime) -> str:
    """A time as people read it, with the name of its zone."""
    local = at.astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S} {local.tzname()}"


def local_of(told: str) -> str:
    """A time that the API told, as people read it."""
    return as_local(datetime.fromisoformat(told))
