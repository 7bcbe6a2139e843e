"""The verb `pool confirm`."""

from __future__ import annotations

from typing import Any

import click

from ipamctl.asking import ask_first
from ipamctl.client import route
from ipamctl.exits import note
from ipamctl.render import sections
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("pool")
@click.option("--dry-run", is_flag=True, help="Only list what stands against it.")
@click.option("--force", is_flag=True, help="Even if two pods use one address: the record stands then.")
@click.option("--yes", is_flag=True, help="Do not ask, though nodes have not reported.")
@click.pass_obj
def confirm(session: Session, /, pool: str, *, dry_run: bool, force: bool, yes: bool) -> None:
    """After a restore: say that what is withheld in a pool is in use nowhere, and may be given to pods again.

    Lists the nodes that have not reported since the restore: their pods may have addresses that the backup does not
    know. Asks before it goes on without them. Where stdin is no terminal, --yes must be said then.
    """
    path = route("pools", pool, "confirm")
    if dry_run:
        session.show(session.client.write("POST", path, {}, {"dry_run": True}), sections)
        return
    if not yes:
        _ask(session.client.write("POST", path, {}, {"dry_run": True}))
    answer = session.client.write("POST", path, {}, {"force": force})
    for node in answer["unreported"]:
        note(f"node {node} has not reported since the restore")
    session.show(answer, sections)


def _ask(found: dict[str, Any]) -> None:
    silent = found["unreported"]
    if found["confirmed"] and silent:
        note(f"not reported since the restore: {', '.join(silent)}")
        ask_first(f"Confirm pool {found['pool']} without {'it' if len(silent) == 1 else 'them'}?")
