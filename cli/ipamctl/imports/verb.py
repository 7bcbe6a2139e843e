"""Owns what both verbs of the group share: their options, the request, and how its answer looks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ipamctl.client import Query, route
from ipamctl.exits import Exit, Refused, note
from ipamctl.imports.progress import Bar, bar
from ipamctl.render import columns
from ipamctl.session import Session

TIMEOUT_S = 60.0
"""An import may take longer than other requests; the servers allow no more."""

_POOL = ("pool", "space", "created", "made", "kept", "gone")
_ENTRY = ("address", "pool", "pod_ref", "ifname", "container_id", "node", "fate", "why")
_CONFLICT = ("place", "address", "why")

Read = Callable[[Bar], Any]
"""Reads the files into the body of the request."""


def import_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of both verbs."""
    file = click.Path(path_type=Path, exists=True, dir_okay=False)
    for decorate in (
        click.option(
            "--cluster", metavar="NAME", help="Name of the Kubernetes cluster, where several share one ipamd."
        ),
        click.option(
            "--conf", "confs", type=file, multiple=True, metavar="FILE",
            help="A network configuration (.conf, .conflist) or NetworkAttachmentDefinition that was used.",
        ),
        click.option("--dry-run", is_flag=True, help="Only say what would be made, kept and refused."),
    ):  # fmt: skip
        command = decorate(command)
    return command


def run(session: Session, read: Read, query: Query) -> None:
    """Read, send, and show what became of it. Refused: every reason on stderr."""
    try:
        answer = _ask(session, read, query)
    except Refused as refused:
        _explain(refused)
        raise
    for warning in answer["warnings"]:
        note(f"warning: {warning}")
    session.show(answer, _table)
    if answer["refused"]:
        click.get_current_context().exit(Exit.REFUSED)


def _ask(session: Session, read: Read, query: Query) -> Any:
    with bar() as shown:
        body = read(shown)
        sending = shown.step("sending")
        return session.client.write("POST", route("import"), body, query, at_least_s=TIMEOUT_S, sent=sending)


def _explain(refused: Refused) -> None:
    """All that stands against the import, a line each."""
    problem = refused.problem
    for one in (*problem.get("faults", ()), *problem.get("conflicts", ())):
        address = f"{one['address']} " if one.get("address") else ""
        note(f"{one['place']}: {address}{one['why']}")


def _table(answer: Mapping[str, Any]) -> str:
    entries = answer.get("entries", ())
    conflicts = answer.get("conflicts", ())
    parts = [_columns(_ENTRY, entries)] if entries else []
    parts.append(_columns(_POOL, answer["pools"]))
    return "\n\n".join([*parts, _columns(_CONFLICT, conflicts)] if conflicts else parts)


def _columns(names: Sequence[str], items: Iterable[Mapping[str, Any]]) -> str:
    return columns([name.upper() for name in names], [[item[name] for name in names] for item in items])
