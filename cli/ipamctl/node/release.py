"""The verb `node release`."""

from __future__ import annotations

import click

from ipamctl.asking import ask_first
from ipamctl.client import route
from ipamctl.exits import note
from ipamctl.render import sections
from ipamctl.reservation.table import reservations_table
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("node", required=False)
@click.option("--suspect", is_flag=True, help="Only what was bound before the node's newest boot and not seen since.")
@click.option("--unclaimed", is_flag=True, help="What an import brought and no node has claimed.")
@click.option("--yes", is_flag=True, help="Do not ask: for a hook that has fenced the node.")
@click.pass_obj
def release(session: Session, /, node: str | None, suspect: bool, unclaimed: bool, yes: bool) -> None:
    """Free all that is bound on a node, for one that is gone for good.

    Lists it and asks before it does. Where stdin is no terminal, --yes must be said.
    """
    if (node is None) is not unclaimed:
        raise click.UsageError("name a node, or say --unclaimed")
    if suspect and unclaimed:
        raise click.UsageError("--suspect is of a node, and --unclaimed of none")
    if not yes:
        _confirm(session, node, suspect=suspect) if node is not None else _confirm_unclaimed(session)
    path = route("nodes", "release-unclaimed") if node is None else route("nodes", node, "release")
    query = {"only": "suspect"} if suspect else None
    session.show(session.client.write("POST", path, {}, query), sections)


def _confirm(session: Session, /, node: str, *, suspect: bool) -> None:
    shown = session.client.get(route("nodes", node))
    state = {"state": "suspect"} if suspect else {}
    held = session.client.pages(route("reservations"), {"node": node, **state})
    click.echo(reservations_table(held), err=True)
    if shown.get("state") == "alive" and not suspect:
        note(f"warning: node {node} is not lost; it reported at {shown['reported']}, and its pods may well be running")
    what = "is suspect on node" if suspect else "is bound on node"
    ask_first(f"Free what {what} {node} in these {len(held['items'])} reservations?")


def _confirm_unclaimed(session: Session) -> None:
    held = session.client.pages(route("reservations"), {"state": "bound"})
    items = [item for item in held["items"] if any(_is_unclaimed(one) for one in item["attachments"])]
    click.echo(reservations_table({"items": items, "next": None}), err=True)
    ask_first(f"Free what no node has claimed in these {len(items)} reservations?")


def _is_unclaimed(attachment: dict[str, object]) -> bool:
    return attachment["container_id"] is not None and attachment["node"] is None
