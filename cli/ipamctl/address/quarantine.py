"""The verb `address quarantine`."""

from __future__ import annotations

from typing import Any

import click

from ipamctl.address.table import address_table
from ipamctl.client import route
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("address")
@click.option("--space", help="Address space; default: default.")
@click.option("--for", "for_s", type=click.IntRange(min=1), metavar="SECONDS", help="So long; default: until lifted.")
@click.option("--note", help="Why, for people.")
@click.option("--lift", is_flag=True, help="Put the address back into use.")
@click.pass_obj
def quarantine(
    session: Session, /, address: str, *, space: str | None, for_s: int | None, note: str | None, lift: bool
) -> None:
    """Take an address out of use, or (--lift) put it back. A holder keeps it until it lets go."""
    if lift and (for_s is not None or note is not None):
        raise click.UsageError("--lift goes without --for and --note")
    path = route("addresses", address, "quarantine")
    if lift:
        answer = session.client.write("DELETE", path, query={"space": space})
    else:
        body = {name: value for name, value in (("for_s", for_s), ("note", note)) if value is not None}
        answer = session.client.write("POST", path, body, {"space": space})

    def table(answer: Any) -> str:
        return address_table(answer) if answer else f"{address} is back in use"

    session.show(answer, table)
