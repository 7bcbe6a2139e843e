"""The verb `pool create`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ipamctl.client import route
from ipamctl.exits import note
from ipamctl.pool.definition import definition_options, given_fields, read_definition
from ipamctl.pool.first_host import gateway_notes
from ipamctl.pool.table import pool_table
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("name", required=False)
@definition_options
@click.pass_obj
def create(session: Session, /, name: str | None, file: Path | None, **options: Any) -> None:
    """Make a pool. One that is there already and equal is no error."""
    given = given_fields(options)
    if file is not None:
        body = read_definition(file, name, given)
    elif name is None or "subnet" not in given:
        raise click.UsageError("give NAME and --subnet, or --file")
    else:
        body = {"name": name, **given}
    pool = session.client.write("POST", route("pools"), body)
    for sentence in gateway_notes(pool):
        note(sentence)
    session.show(pool, pool_table)
