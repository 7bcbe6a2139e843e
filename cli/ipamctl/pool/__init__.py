"""The group `pool`."""

from __future__ import annotations

import click

from ipamctl.pool.apply import apply
from ipamctl.pool.confirm import confirm
from ipamctl.pool.create import create
from ipamctl.pool.delete import delete
from ipamctl.pool.list import list_
from ipamctl.pool.show import show
from ipamctl.pool.update import update
from ipamctl.pool.usage import usage


@click.group()
def pool() -> None:
    """The ranges from which pods get their addresses."""


for _verb in (create, list_, show, update, delete, usage, apply, confirm):
    pool.add_command(_verb)
