"""The verb `import whereabouts`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ipamctl.imports.progress import Bar
from ipamctl.imports.sources import read_objects
from ipamctl.imports.verb import import_options, run
from ipamctl.session import Session, Verb


@click.command(cls=Verb)
@click.argument("path", type=click.Path(path_type=Path, exists=True, allow_dash=True))
@import_options
@click.pass_obj
def whereabouts(
    session: Session, /, path: Path, confs: tuple[Path, ...], cluster: str | None, *, dry_run: bool
) -> None:
    """Take over the pools of whereabouts.

    PATH is a file, or a directory with files, of what this prints (- is stdin):

    \b
    kubectl get ippools,overlappingrangeipreservations,nodeslicepools -A -o json

    Everything is imported or nothing. Again, it adds what is new.
    """  # noqa: D301 - `\b` is the character with which click keeps the next lines as they are

    def read(bar: Bar) -> dict[str, Any]:
        bar.step("reading")
        return read_objects(path, confs)

    run(session, read, {"format": "whereabouts", "dry_run": dry_run, "cluster": cluster})
