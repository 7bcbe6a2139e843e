"""The verb `node release`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.render import sections
from ipamctl.reservation.table import reservations_table
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("node", required=False)
@click.option("--unclaimed", is_flag=True, help="What an import brought and no node has claimed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def release(session: Session, /, node: str | None, unclaimed: bool, yes: bool) -> None:
    """Free all that is bound on a node, for one that is gone for good. Asks before it does."""
    if (node is None) is not unclaimed:
        raise click.UsageError("name a node, or say --unclaimed")
    if not yes:
        _confirm(session, node) if node is not None else _confirm_unclaimed(session)
    path = route("nodes", "release-unclaimed") if node is None else route("nodes", node, "release")
    session.show(session.client.write("POST", path, {}), sections)


def _confirm(session: Session, node: str) -> None:
    session.client.get(route("nodes", node))
    held = session.client.pages(route("reservations"), {"node": node})
    click.echo(reservations_table(held), err=True)
    click.confirm(f"Free what node {node} has bound in these {len(held['items'])} reservations?", abort=True, err=True)


def _confirm_unclaimed(session: Session) -> None:
    held = session.client.pages(route("reservations"), {"state": "bound"})
    items = [item for item in held["items"] if any(_is_unclaimed(one) for one in item["attachments"])]
    click.echo(reservations_table({"items": items, "next": None}), err=True)
    click.confirm(f"Free what no node has claimed in these {len(items)} reservations?", abort=True, err=True)


def _is_unclaimed(attachment: dict[str, object]) -> bool:
    return attachment["container_id"] is not None and attachment["node"] is None
