"""The verb `reservation add`."""

from __future__ import annotations

from typing import Any

import click

from ipamctl.client import route
from ipamctl.reservation.table import reservation_table
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("pool")
@click.argument("pod_ref")
@click.option("--ifname", metavar="INTERFACE", help="The pod's interface; default eth0.")
@click.option("--container-id", metavar="ID", help="Bind it to this container; without, it is held.")
@click.option("--node", help="The node of the container.")
@click.option("--address", "addresses", multiple=True, help="Exactly this address. Repeatable: one a family or range.")
@click.option("--pin", is_flag=True, help="Keep it for ever.")
@click.option("--ttl", "ttl_s", type=click.IntRange(min=1), metavar="SECONDS", help="Hold it that long.")
@click.option("--note", help="A remark for people.")
@click.pass_obj
def add(session: Session, /, pool: str, pod_ref: str, addresses: tuple[str, ...], pin: bool, **options: Any) -> None:
    """Reserve addresses of a pool for a pod: the next free ones, or those it has already."""
    body = {"pool": pool, "pod_ref": pod_ref, **{name: value for name, value in options.items() if value is not None}}
    if addresses:
        body["addresses"] = list(addresses)
    if pin:
        body["pin"] = True
    session.show(session.client.write("POST", route("reservations"), body), reservation_table)
