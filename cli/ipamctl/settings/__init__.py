"""The group `settings`."""

from __future__ import annotations

import click

from ipamctl.settings.set import set_
from ipamctl.settings.show import show


@click.group()
def settings() -> None:
    """The settings that all members share."""


for _verb in (show, set_):
    settings.add_command(_verb)
