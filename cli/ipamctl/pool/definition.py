"""Owns the options that describe a pool, and the JSON that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from ipamctl.documents import name_of, read_document

RANGE_FIELDS = ("subnet", "range_start", "range_end", "exclude", "gateway")
"""The fields of a range; at the top level of a definition they describe its only one."""

_OPTIONS = (
    click.option("--file", "file", type=click.Path(path_type=Path, allow_dash=True), metavar="POOL.json",
                 help="The whole definition as JSON or YAML; - reads it from stdin."),
    click.option("--subnet", metavar="CIDR", help="The subnet of its only range."),
    click.option("--range-start", metavar="ADDRESS", help="First address to hand out."),
    click.option("--range-end", metavar="ADDRESS", help="Last address to hand out."),
    click.option("--exclude", multiple=True, metavar="X", help="Not to hand out: address, CIDR or a-b. Repeatable."),
    click.option("--gateway", metavar="ADDRESS", help="The subnet's gateway; it is not handed out."),
    click.option("--space", metavar="SPACE", help="Address space; addresses are unique in it."),
    click.option("--strategy", type=click.Choice(["lowest", "round-robin", "random"]), help="Which address first."),
    click.option("--cooldown", "cooldown_s", type=int, metavar="SECONDS", help="Rest of a freed address."),
    click.option("--cooldown-min", "cooldown_min_s", type=int, metavar="SECONDS", help="The part never cut short."),
    click.option("--hold", "hold_s", type=int, metavar="SECONDS", help="Kept for the pod after release; -1: for ever."),
    click.option("--reclaim", metavar="never|after:SECONDS", help="When a lost node's addresses are freed."),
    click.option("--allow-overlap/--no-allow-overlap", default=None, help="May overlap other pools of its space."),
    click.option("--route", "routes", multiple=True, metavar="CIDR[,GATEWAY]", help="Route for the pod. Repeatable."),
    click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="For people and tools. Repeatable."),
)  # fmt: skip


def definition_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of `pool create` and `pool update`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """What the options say, as fields of a definition."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    for name in ("exclude", "routes", "labels"):
        if name in given:
            given[name] = list(given[name])
    if "routes" in given:
        given["routes"] = [_route(text) for text in given["routes"]]
    if "labels" in given:
        given["labels"] = dict(_label(text) for text in given["labels"])
    return given


def _route(text: str) -> dict[str, str]:
    dst, comma, gateway = text.partition(",")
    return {"dst": dst, "gw": gateway} if comma else {"dst": dst}


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"--label {text}: not of the form KEY=VALUE")
    return key, value


def read_definition(path: Path, name: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The definition in a file, under the name of the command line. Raises UsageError."""
    if given:
        raise click.UsageError("--file has the whole definition: no other option may describe the pool")
    value = read_document(path)
    if not isinstance(value, dict):
        raise click.UsageError(f"{name_of(path)} does not hold one pool")
    if name is not None and value.setdefault("name", name) != name:
        raise click.UsageError(f"{name_of(path)} describes the pool {value['name']!r}, not {name!r}")
    return value
