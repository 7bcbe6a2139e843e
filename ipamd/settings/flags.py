"""Owns the command line's options: made from the table, text only, so that all checks are in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from ipamd.settings.table import TABLE, Setting

F = TypeVar("F", bound=Callable[..., object])


def settings_options(function: F) -> F:
    """Give a click command one option for each setting."""
    for setting in reversed(TABLE):
        function = _option(setting)(function)
    return function


def _option(setting: Setting) -> Callable[[F], F]:
    default = f"default: {setting.default}" if setting.default is not None else f"default: {setting.default_note}"
    about = f"{setting.about} [{setting.variable}; {default}]".replace("`", "")
    if setting.kind.is_flag:
        return click.option(f"{setting.flag}/--no-{setting.name}", setting.field, default=None, help=about)
    many = setting.kind.is_list
    return click.option(setting.flag, setting.field, metavar=setting.kind.name, default=None, help=about, multiple=many)
