"""The verb `settings set`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from ipamctl.client import route
from ipamctl.session import Session, Verb
from ipamctl.settings.show import settings_table

_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}


@click.command("set", cls=Verb)
@click.argument("pairs", metavar="NAME=VALUE...", nargs=-1, required=True)
@click.pass_obj
def set_(session: Session, /, pairs: tuple[str, ...]) -> None:
    """Change settings; the others stay as they are."""
    settings = session.client.get(route("settings"))
    session.show(session.client.write("PUT", route("settings"), dict(_read(settings, pairs))), settings_table)


def _read(settings: Mapping[str, Any], pairs: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for pair in pairs:
        given, equals, text = pair.partition("=")
        name = given.replace("-", "_")  # the options of `ipamd serve` and its file spell them so
        if not equals:
            raise click.UsageError(f"{pair!r} is not of the form NAME=VALUE")
        if name not in settings:
            raise click.UsageError(f"there is no setting {given!r} (known: {', '.join(settings)})")
        yield name, _value(name, text, settings[name])


def _value(name: str, text: str, now: Any) -> Any:
    """The text as a value of the same type as the one in force."""
    if isinstance(now, bool):
        if text.lower() not in _BOOLEANS:
            raise click.UsageError(f"{name} is true or false, not {text!r}")
        return _BOOLEANS[text.lower()]
    if isinstance(now, int):
        try:
            return int(text)
        except ValueError:
            raise click.UsageError(f"{name} is a whole number, not {text!r}") from None
    return text
