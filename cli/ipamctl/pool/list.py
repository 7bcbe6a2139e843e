"""The verb `pool list`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.pool.table import pools_table
from ipamctl.session import Session, Verb, list_options


@click.command("list", cls=Verb)
@list_options
@click.pass_obj
def list_(session: Session, /, limit: int | None, cursor: str | None) -> None:
    """List all pools."""
    session.show(session.client.pages(route("pools"), limit=limit, cursor=cursor), pools_table)
