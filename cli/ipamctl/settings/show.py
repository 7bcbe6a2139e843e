"""The verb `settings show`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.render import fields
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.pass_obj
def show(session: Session) -> None:
    """Show the settings in force."""
    session.show(session.client.get(route("settings")), settings_table)


def settings_table(settings: Mapping[str, Any]) -> str:
    """The settings, a line each."""
    return fields(settings.items())
