"""Owns the command line's options: made from the table, text only, so that all checks are in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from ipamd.settings.agent import AGENT_TABLE
from ipamd.settings.table import TABLE, Setting

F = TypeVar("F", bound=Callable[..., object])


def settings_options(function: F) -> F:
    """Give a click command one option for each setting of a server."""
    return _options(TABLE, function)


def agent_options(function: F) -> F:
    """The same for those of an agent."""
    return _options(AGENT_TABLE, function)


def _options(table: tuple[Setting, ...], function: F) -> F:
    for setting in reversed(table):
        function = _option(setting)(function)
    return function


def _option(setting: Setting) -> Callable[[F], F]:
    default = f"default: {setting.default}" if setting.default is not None else f"default: {setting.default_note}"
    about = f"{setting.about} [{setting.variable}; {default}]".replace("`", "")
    if setting.kind.is_flag:
        return click.option(f"{setting.flag}/--no-{setting.name}", setting.field, default=None, help=about)
    many = setting.kind.is_list
    return click.option(setting.flag, setting.field, metavar=setting.kind.name, default=None, help=about, multiple=many)
