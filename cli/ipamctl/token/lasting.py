"""Owns how long a token is to last, as it is written on the command line."""

from __future__ import annotations

import re
from typing import Any

import click

FOR_EVER = -1
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_WRITTEN = re.compile(r"([0-9]{1,9})([smhd]?)")


class Lasting(click.ParamType[int]):
    """`90d`, `24h`, `30m`, seconds, or `never`."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Seconds, -1 for ever; or end with status 2."""
        if isinstance(value, int):
            return value
        if value == "never":
            return FOR_EVER
        found = _WRITTEN.fullmatch(str(value))
        if found is None or int(found[1]) == 0:
            self.fail(f"{value!r} is no time such as 90d, 24h, 30m or 3600 (seconds), nor never", param, ctx)
        return int(found[1]) * _UNITS[found[2]]
