"""Owns the command: which measurements to run, and how to print them. Writes nothing but its output."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from bench import cluster, dialects, http, plugin, scale, snapshot
from bench.figures import Figure, show
from bench.servers import running

PARTS = ("plugin", "http", "dialects", "scale", "cluster", "snapshot")


def figures(part: str, folder: Path, reservations: int, missed: int) -> Iterator[Figure]:
    """The figures of one part."""
    if part == "scale":
        yield from scale.measure(folder, reservations)
        return
    if part == "cluster":
        yield from cluster.measure(folder, missed)
        return
    if part == "snapshot":
        yield from snapshot.measure(folder, reservations)
        return
    with running(folder) as (server,):
        if part == "plugin":
            yield from plugin.measure(server, folder)
        else:
            yield from dialects.measure(server) if part == "dialects" else http.measure(server)


@click.command()
@click.option("--only", "parts", multiple=True, type=click.Choice(PARTS), help="One part; repeatable.")
@click.option("--reservations", default=1_000_000, show_default=True, help="How many the large server holds.")
@click.option("--missed", default=100_000, show_default=True, help="How many commands a member misses.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON in place of a table.")
def main(*, parts: tuple[str, ...], reservations: int, missed: int, as_json: bool) -> None:
    """Measure a real server of its own, beside what is asked of it."""
    found = []
    for part in parts or PARTS:
        if not as_json:
            click.echo(f"{part}:")
        with tempfile.TemporaryDirectory(prefix="ipamd-bench-") as folder:
            for figure in figures(part, Path(folder), reservations, missed):
                found.append(figure)
                if not as_json:
                    show(figure)
    if as_json:
        click.echo(json.dumps([figure.as_json() for figure in found], indent=1))


if __name__ == "__main__":
    main()
