"""Owns asking before what cannot be taken back: at a terminal only, never of what a script happens to read."""

from __future__ import annotations

import sys

import click

from ipamctl.text import printable


def ask_first(question: str) -> None:
    """Ask a person. Raises Abort where the answer is no, UsageError where stdin is no terminal to be asked at."""
    asked = printable(question)
    if sys.stdin is None or not sys.stdin.isatty():
        raise click.UsageError(f"{asked} Nobody can be asked, as stdin is no terminal: say --yes")
    click.confirm(asked, abort=True, err=True)
