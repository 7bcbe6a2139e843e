"""The verb `pool update`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ipamctl.client import route
from ipamctl.pool.definition import RANGE_FIELDS, definition_options, given_fields, read_definition
from ipamctl.pool.table import pool_table
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("name")
@definition_options
@click.option("--force", is_flag=True, help="Even if holders stay outside every new subnet.")
@click.option("--dry-run", is_flag=True, help="Only list who would be stranded.")
@click.pass_obj
def update(session: Session, /, name: str, file: Path | None, force: bool, dry_run: bool, **options: Any) -> None:
    """Change a pool: what is given replaces what is there, '' removes it.

    With --file the file replaces the whole definition. Holders keep their addresses until they let go.
    """
    given = given_fields(options)
    if file is not None:
        body = read_definition(file, name, given)
    elif not given:
        raise click.UsageError("nothing to change is given")
    else:
        body = _merged(_own_definition(session, name), given)
    query = {"force": force, "dry_run": dry_run}
    session.show(session.client.write("PUT", route("pools", name), body, query), pool_table)


def _own_definition(session: Session, /, name: str) -> dict[str, Any]:
    """The pool's definition without what only echoes the settings, so that it goes on following them."""
    pool = session.client.get(route("pools", name))
    settings = session.client.get(route("settings"))
    return {key: value for key, value in pool.items() if key not in settings or settings[key] != value}


def _merged(pool: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**pool, **{key: value for key, value in given.items() if key not in RANGE_FIELDS}}
    changes = {key: value for key, value in given.items() if key in RANGE_FIELDS}
    if changes:
        merged["ranges"] = [[_replaced(_only_range(pool), changes)]]
    return merged


def _only_range(pool: Mapping[str, Any]) -> Mapping[str, Any]:
    ranges = [entry for alternatives in pool["ranges"] for entry in alternatives]
    if len(ranges) != 1:
        raise click.UsageError(f"the pool {pool['name']} has {len(ranges)} ranges: change them with --file")
    return dict(ranges[0])


def _replaced(entry: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    replaced = {**entry, **changes}
    return {key: value for key, value in replaced.items() if value not in ("", [""])}
