"""The verb `pool apply`."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import click

from ipamctl.client import Client, route
from ipamctl.exits import NotFound, Refused, note
from ipamctl.pool.declared import Declared, read_declared
from ipamctl.pool.first_host import gateway_notes
from ipamctl.render import columns
from ipamctl.session import Session, Verb

_ECHOES = ("created", "inline", "stranded")
"""What an answer says beside the definition."""


class _Step(NamedTuple):
    """What becomes of one pool: `is` there already, `make` it or `change` it; `after` is how the servers read it."""

    declared: Declared
    what: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    stranded: Sequence[Mapping[str, Any]] = ()


@click.command(cls=Verb)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Only show what would be changed.")
@click.option("--force", is_flag=True, help="Even if holders stay outside every new subnet of their pool.")
@click.pass_obj
def apply(session: Session, /, paths: tuple[Path, ...], *, dry_run: bool, force: bool) -> None:
    """Make or change pools as files declare them: JSON or YAML, a pool or several in a file, or directories of them.

    What is so already is left alone, and no pool is ever deleted. Before anything is written a server reads all of
    them. The first one that it refuses ends the run: that a new pool overlaps another one shows only when it is made.
    """
    steps = [_step(session.client, declared) for declared in read_declared(paths)]
    for step in steps:
        _show_difference(step)
    done = [_carry_out(session.client, step, force=force) for step in steps] if not dry_run else steps
    shown = [{"pool": step.declared.name, "result": _result(step, dry_run=dry_run)} for step in done]
    session.show({"items": shown, "next": None}, _table)


def _step(client: Client, declared: Declared) -> _Step:
    """What has to be done for a pool. The servers say how they read the declaration. Raises Failure."""
    path = route("pools", declared.name)
    try:
        with _told_of(declared):
            answer = client.write("PUT", path, declared.body, {"dry_run": True, "force": True})
    except NotFound:  # a new one; the server has read the definition before it looked for the pool
        return _Step(declared, "created", None, declared.body)
    before = client.get(path)
    what = "unchanged" if _definition(before) == _definition(answer) else "changed"
    return _Step(declared, what, before, answer, answer.get("stranded") or ())


def _carry_out(client: Client, step: _Step, *, force: bool) -> _Step:
    name, body = step.declared.name, step.declared.body
    with _told_of(step.declared):
        if step.what == "created":
            made = client.write("POST", route("pools"), body)
            for sentence in gateway_notes(made):
                note(sentence)
        elif step.what == "changed":
            client.write("PUT", route("pools", name), body, {"force": force})
    return step


@contextmanager
def _told_of(declared: Declared) -> Iterator[None]:
    """A refusal is said with the place of what is refused: there may be many files."""
    try:
        yield
    except Refused as refused:
        raise Refused(f"{declared.place}, pool {declared.name}: {refused.message}", refused.problem) from refused


def _definition(pool: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in pool.items() if name not in _ECHOES}


def _show_difference(step: _Step) -> None:
    """On stderr, as `diff -u` shows it; behind it who keeps an address that the pool would not give any more."""
    if step.what == "unchanged":
        return
    before = [] if step.before is None else _lines(step.before)
    after = _lines(step.after or {})
    name = step.declared.name
    for line in difflib.unified_diff(before, after, f"{name} (as it is)", step.declared.place, lineterm=""):
        click.echo(line, err=True)
    for one in step.stranded:
        note(f"{one['address']} of {one['pod_ref']} would be stranded: it stays until the pod lets go")


def _lines(pool: Mapping[str, Any]) -> list[str]:
    return json.dumps(_definition(pool), indent=1).split("\n")


def _result(step: _Step, *, dry_run: bool) -> str:
    return f"would be {step.what}" if dry_run and step.what != "unchanged" else step.what


def _table(value: Mapping[str, Any]) -> str:
    return columns(("POOL", "RESULT"), _rows(value["items"]))


def _rows(items: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    yield from ((one["pool"], one["result"]) for one in items)
