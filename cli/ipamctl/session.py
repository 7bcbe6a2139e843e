"""Owns what a verb works with: the client, the format of its output, and the base of all verbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from ipamctl.client import Client
from ipamctl.exits import say
from ipamctl.render import as_json, as_yaml

FORMATS = ("table", "json", "yaml")


@dataclass
class Session:
    """One run: how to reach the servers, and how to show what they answer."""

    client: Client
    output: str

    def show(self, value: Any, table: Callable[[Any], str]) -> None:
        """Print a result; `table` draws it for people."""
        if self.output == "json":
            text = as_json(value)
        elif self.output == "yaml":
            text = as_yaml(value)
        else:
            text = table(value)
        say(text)


class Verb(click.Command):
    """A command that shows something: `-o` may stand behind it too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.append(
            click.Option(
                ["-o", "--output"],
                type=click.Choice(FORMATS),
                expose_value=False,
                callback=_set_output,
                help="How to print the result; as before the group.",
            )
        )


def _set_output(context: click.Context, _parameter: click.Parameter, value: str | None) -> None:
    session = context.find_object(Session)
    if value is not None and session is not None:
        session.output = value


def list_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every list: how much of it, and from where on."""
    command = click.option("--cursor", help="Go on where a list with --limit ended: its `next`.")(command)
    return click.option("--limit", type=click.IntRange(min=1), help="At most so many items; default: all.")(command)
