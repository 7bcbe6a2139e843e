"""Owns the exit statuses and the failures that end a run: one sentence on stderr each."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from enum import IntEnum
from typing import IO, Any

import click

from ipamctl.text import printable, reason


class Exit(IntEnum):
    """Exit statuses; scripts rely on them."""

    DONE = 0
    REFUSED = 1
    USAGE = 2
    UNAVAILABLE = 3
    NOT_FOUND = 4
    DEGRADED = 5


class Failure(click.ClickException):
    """Ends the run with a sentence and a status."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the sentence as one line; what came from the server cannot steer the terminal."""
        click.echo(f"ipamctl: {printable(self.message)}", file=file, err=file is None)


class Refused(Failure):
    """A server understood the request and refused it. `problem`: all that it said."""

    exit_code = Exit.REFUSED

    def __init__(self, sentence: str, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(sentence)
        self.problem = problem or {}


class NotFound(Failure):
    """What the request names is not there."""

    exit_code = Exit.NOT_FOUND


class Unavailable(Failure):
    """No server gave a definite answer. `heard`: at least one of them was there."""

    exit_code = Exit.UNAVAILABLE

    def __init__(self, sentence: str, *, heard: bool) -> None:
        super().__init__(sentence)
        self.heard = heard


def say(text: str) -> None:
    """Print a result. Raises Failure where it cannot be written: a full disk behind a redirection."""
    try:
        click.echo(text)
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader has seen enough: click ends the run without a word
            raise
        raise Failure(f"the result cannot be written: {reason(error)}") from None


def note(sentence: str) -> None:
    """Say something beside the result, on stderr."""
    click.echo(f"ipamctl: {printable(sentence)}", err=True)
