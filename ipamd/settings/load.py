"""Owns the way from file, environment and flags to a Config: the strongest source wins, all mistakes come together."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from ipamd.core.model import Settings
from ipamd.settings.agent import AGENT_TABLE
from ipamd.settings.config import AgentConfig, Config
from ipamd.settings.rules import Host, Named, completed, completed_agent, mistakes_between, mistakes_of_agent
from ipamd.settings.table import TABLE, Setting

__all__ = ["Host", "SettingsError", "load", "load_agent"]

Table = tuple[Setting, ...]

MAX_FILE_BYTES = 1 << 20


class SettingsError(Exception):
    """All mistakes of one start, each a sentence that names the setting, its source and its value."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("\n".join(mistakes))
        self.mistakes = mistakes


class _Given(NamedTuple):
    value: object
    source: str


def load(flags: Mapping[str, object], environ: Mapping[str, str], host: Host) -> Config:
    """The settings of this start; `flags` by field name, None where not given. Raises SettingsError."""
    values = _values(TABLE, flags, environ, lambda given: mistakes_between(given, host))
    complete = {name.replace("-", "_"): value for name, value in completed(values, host).items()}
    own: dict[str, Any] = {field.name: complete.get(field.name) for field in fields(Config)}
    own["first"] = Settings(**{name: complete[name] for name in Settings.__struct_fields__})
    return Config(**own)


def load_agent(flags: Mapping[str, object], environ: Mapping[str, str], host: Host) -> AgentConfig:
    """The same for an agent."""
    values = _values(AGENT_TABLE, flags, environ, lambda given: mistakes_of_agent(given, host))
    complete = {name.replace("-", "_"): value for name, value in completed_agent(values, host).items()}
    own: dict[str, Any] = {field.name: complete.get(field.name) for field in fields(AgentConfig)}
    return AgentConfig(**own)


def _values(
    table: Table, flags: Mapping[str, object], environ: Mapping[str, str], rules: Callable[[Named], list[str]]
) -> dict[str, Any]:
    """What was given, or is the default, of each setting, by name. Raises SettingsError."""
    mistakes: list[str] = []
    given = {setting.name: _Given(setting.default, "default") for setting in table if setting.default is not None}
    strong = _from_environment(table, environ) | _from_flags(table, flags)
    if path := strong.get("config"):
        given |= _from_file(table, Path(str(path.value)), mistakes)
    values = _read(table, given | strong, mistakes)
    mistakes += rules(_named(values, given | strong))
    if mistakes:
        raise SettingsError(mistakes)
    return values


def _from_environment(table: Table, environ: Mapping[str, str]) -> dict[str, _Given]:
    """An empty variable counts as not set: that is what compose files and unit files make of an absent one."""
    return {
        setting.name: _Given(environ[setting.variable], f"environment {setting.variable}")
        for setting in table
        if environ.get(setting.variable)
    }


def _from_flags(table: Table, flags: Mapping[str, object]) -> dict[str, _Given]:
    return {
        setting.name: _Given(flags[setting.field], f"flag {setting.flag}")
        for setting in table
        if flags.get(setting.field) not in (None, ())
    }


def _from_file(table: Table, path: Path, mistakes: list[str]) -> dict[str, _Given]:
    source = f"file {path}"
    found = _read_toml(path, mistakes)
    known = {setting.name: setting for setting in table if setting.name != "config"}
    mistakes += [_unknown(key, known, source) for key in found if key not in known]
    return {key: _Given(value, source) for key, value in found.items() if key in known}


def _read_toml(path: Path, mistakes: list[str]) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            mistakes.append(f"config: {path} is larger than {MAX_FILE_BYTES} bytes")
            return {}
        return tomllib.loads(data.decode())
    except OSError as error:
        mistakes.append(f"config: {path} cannot be read: {error.strerror}")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        mistakes.append(f"config: {path} is not TOML: {error}")
    return {}


def _unknown(key: str, known: Mapping[str, Setting], source: str) -> str:
    near = difflib.get_close_matches(key.replace("_", "-"), known, 1)
    return f"{key}: there is no such setting ({source})" + (f"; did you mean {near[0]}?" if near else "")


def _read(table: Table, given: Mapping[str, _Given], mistakes: list[str]) -> dict[str, Any]:
    """Typed values by name; what cannot be read becomes a mistake and is left out."""
    values: dict[str, Any] = {}
    for setting in table:
        if setting.name in given:
            value, source = given[setting.name]
            try:
                values[setting.name] = setting.kind.read(value)
            except ValueError as problem:
                mistakes.append(f"{setting.name}: {_shown(value)} {problem} ({source})")
    return values


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def _named(values: Mapping[str, Any], given: Mapping[str, _Given]) -> Named:
    """A rule is checked only where all that it compares could be read."""

    def text(name: str) -> str:
        return f"{name} {values[name]} ({given[name].source})"

    return Named(values, given.keys() - values.keys(), text)
