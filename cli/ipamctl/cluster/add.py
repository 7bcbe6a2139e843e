"""The verb `cluster add`."""

from __future__ import annotations

import click

from ipamctl.client import route
from ipamctl.cluster.table import cluster_table
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("name")
@click.option("--raft", required=True, metavar="HOST:PORT", help="Where its Raft port is reached.")
@click.option("--api", required=True, metavar="URL", help="Where its HTTP API is reached.")
@click.pass_obj
def add(session: Session, /, name: str, raft: str, api: str) -> None:
    """Take a member in before it starts. `ipamd serve --join` does this by itself."""
    body = {"name": name, "raft": raft, "api": api}
    session.show(session.client.write("POST", route("cluster", "members"), body), cluster_table)
