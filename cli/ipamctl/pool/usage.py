"""The verb `pool usage`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.render import columns
from ipamctl.session import Session, Verb

_COUNTS = (
    "total", "bound", "suspect", "lost", "held", "cooling", "quarantined", "withheld", "elsewhere", "free",
)  # fmt: skip


@click.command(cls=Verb)
@click.argument("name")
@click.pass_obj
def usage(session: Session, /, name: str) -> None:
    """Count what holds a pool's addresses. `suspect` and `lost` are part of `bound`."""

    def table(answer: Mapping[str, Any]) -> str:
        return columns(("POOL", "FAMILY", *(count.upper() for count in _COUNTS)), _rows(name, answer))

    session.show(session.client.get(route("pools", name, "usage")), table)


def _rows(name: str, answer: Mapping[str, Any]) -> Iterator[list[Any]]:
    for family in ("ipv4", "ipv6"):
        counts = answer.get(family)
        if counts:
            yield [name, family, *(counts.get(count) for count in _COUNTS)]
