"""The verb `node sync`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ipamctl.client import route
from ipamctl.documents import name_of
from ipamctl.node.alive import Alive, read_alive
from ipamctl.session import Session, Verb
from ipamctl.text import reason


@click.command(cls=Verb)
@click.argument("node")
@click.option(
    "--from", "source", required=True, type=click.Path(path_type=Path, allow_dash=True), metavar="FILE|-",
    help="What runs there: a list from crictl, nerdctl, podman or kubectl as JSON, or an id or NAMESPACE/NAME a line.",
)  # fmt: skip
@click.pass_obj
def sync(session: Session, /, node: str, source: Path) -> None:
    """Say who lives on a node. That may keep addresses which its own reports would free, and never frees one."""
    alive = _read(source)
    index, shown = session.client.get_with_index(route("nodes", node))
    living = [one for one in shown["attachments"] if one["container_id"] and alive.has(one)]
    lines = [
        {**{name: one[name] for name in ("cni_network", "container_id", "ifname")}, "alive": True} for one in living
    ]
    body = {"boot_id": None, "index": index, "cluster_id": shown["cluster_id"], "attachments": lines}
    session.client.write("POST", route("nodes", node, "inventory"), body)
    answer = {"node": node, "alive": len(living), "not_listed": len(shown["attachments"]) - len(living)}
    session.show(answer, _sentence)


def _sentence(answer: Any) -> str:
    return (
        f"{answer['alive']} interfaces on node {answer['node']} are alive;"
        f" {answer['not_listed']} more are bound there, and stay as they are"
    )


def _read(source: Path) -> Alive:
    try:
        text = sys.stdin.read() if str(source) == "-" else source.read_text(encoding="utf-8")
        return read_alive(text)
    except (OSError, ValueError) as bad:
        raise click.UsageError(f"{name_of(source)} cannot be read: {reason(bad)}") from bad
