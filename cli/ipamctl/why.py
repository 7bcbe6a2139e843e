"""The verb `why`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.render import columns, fields
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("pool", required=False)
@click.option("--pod", "pod_ref", metavar="NS/NAME", help="The pod that asks; default: one never seen.")
@click.option("--ifname", metavar="INTERFACE", help="Its interface; default eth0.")
@click.pass_obj
def why(session: Session, /, pool: str | None, pod_ref: str | None, ifname: str | None) -> None:
    """Say what a pod would get now and why, or why not. Nothing is changed."""
    query = {"pod_ref": pod_ref, "ifname": ifname}
    if pool is not None:
        session.show(session.client.get_or_stale(route("pools", pool, "why"), query), _table)
        return
    names = [item["name"] for item in session.client.pages(route("pools"))["items"]]
    answers = [session.client.get_or_stale(route("pools", name, "why"), query) for name in names]
    session.show({"items": answers, "next": None}, _tables)


def _tables(answers: Mapping[str, Any]) -> str:
    return "\n\n".join(_table(answer) for answer in answers["items"]) or "there is no pool"


def _table(answer: Mapping[str, Any]) -> str:
    """The fields, then each list of objects as a table of its own."""
    nested = {name: value for name, value in answer.items() if _is_table(value)}
    parts = [fields((name, value) for name, value in answer.items() if name not in nested)]
    parts += [_nested_table(rows) for rows in nested.values()]
    return "\n\n".join(parts)


def _is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _nested_table(rows: list[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return columns([name.upper() for name in names], [[row.get(name) for name in names] for row in rows])
