"""Owns the page of all formats: what carries a version, which one is written, and what a newer one is met with.

`python -m ipamd.formats` prints the reference page.
"""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

from ipamd.api.between import PREFIX
from ipamd.consensus import hardstate, peers, records, smallfile
from ipamd.core import commands, entries, levels, outcomes, spooled
from ipamd.storage import database, digest, snapshots

_HEAD: Final = """\
# Formats

<!-- Made from the program by `python -m ipamd.formats`; edit that. -->

Whatever outlives a process, or goes to a process of another version, says its format. A program reads its own formats
and older ones; what is of a newer one it refuses with a sentence that names it, and changes nothing. What may change
from one version to the next stands in [Upgrade](../howto/upgrade.md), and why in
[decision 23](../decisions/0023-levels-and-formats.md).

This program has **level {level}**. The level says what a program knows of the log: each member tells its own
(`ipamctl cluster status`), and a command that came with a higher one is proposed only when every member knows it.

| what | where | format | a newer one |
|---|---|---|---|
"""


class Format(NamedTuple):
    """One row: what it is, where it lies, the version that is written, and what happens at a newer one."""

    what: str
    where: str
    version: int | str
    newer: str


FORMATS: Final = (
    Format("state", "`state.db`, `PRAGMA user_version`", database.FORMAT, "the start is refused"),
    Format("state file", "snapshots and backups: its last byte", snapshots.FILE_FORMAT, "not installed, not restored"),
    Format("journal", "`journal/*.log`, head of each file", records.FORMAT, "the start is refused"),
    Format("term and vote", "`journal/vote`", hardstate.FORMAT, "the start is refused"),
    Format("small files", "`journal/members`, `journal/installing`", smallfile.FORMAT, "the start is refused"),
    Format("entry", "first byte of an entry of the log", entries.VERSION, "the process stops before it is applied"),
    Format("command", "first byte of a command", commands.VERSION, "the process stops before it is applied"),
    Format("outcome", "first byte of a kept answer", outcomes.VERSION, "the process stops"),
    Format("digest", "what members compare", digest.ENCODING, "never changed; new records are new kinds"),
    Format("members' greeting", "first frame between members", peers.FORMAT, "the member is not let in"),
    Format("members' requests", "paths between members", f"`{PREFIX}`", "404: the member counts as away"),
    Format("spooled DEL", "first line of a file in the spool", spooled.VERSION, "put aside, and counted as refused"),
)


def page() -> str:
    """The reference page."""
    rows = (f"| {one.what} | {one.where} | {one.version} | {one.newer} |\n" for one in FORMATS)
    return _HEAD.format(level=levels.LEVEL) + "".join(rows) + _kinds()


def _kinds() -> str:
    """The kinds of commands by the level that they came with."""
    lines = ["\n## Commands by level\n\n| level | commands |\n|---|---|\n"]
    for level in range(1, levels.LEVEL + 1):
        names = [kind.__name__ for kind in commands.KINDS.values() if levels.LATER.get(kind, 1) == level]
        lines.append(f"| {level} | {', '.join(f'`{name}`' for name in names)} |\n")
    return "".join(lines)


if __name__ == "__main__":
    sys.stdout.write(page())
