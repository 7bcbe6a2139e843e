"""The verb `pool delete`."""

from __future__ import annotations

from typing import Any

import click

from ipamctl.client import route
from ipamctl.pool.table import stranded_table
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("name")
@click.option("--force", is_flag=True, help="Even if it is in use: its reservations are freed.")
@click.option("--dry-run", is_flag=True, help="Only list whose addresses would be freed.")
@click.pass_obj
def delete(session: Session, /, name: str, force: bool, dry_run: bool) -> None:
    """Delete a pool that nobody uses."""
    answer = session.client.write("DELETE", route("pools", name), query={"force": force, "dry_run": dry_run})

    def table(answer: Any) -> str:
        sentence = f"pool {name} would be deleted" if dry_run else f"pool {name} is deleted"
        stranded = answer.get("stranded") if answer else None
        return f"{stranded_table(stranded)}\n\n{sentence}" if stranded else sentence

    session.show(answer, table)
