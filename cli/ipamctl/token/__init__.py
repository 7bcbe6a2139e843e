"""The group `token`."""

from __future__ import annotations

import click

from ipamctl.token.create import create
from ipamctl.token.list import list_
from ipamctl.token.revoke import revoke


@click.group()
def token() -> None:
    """Tokens: who may do what over TCP."""


for _verb in (create, list_, revoke):
    token.add_command(_verb)
