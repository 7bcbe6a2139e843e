"""Owns the JSON of what administrators see: settings and health."""

from __future__ import annotations

from typing import Any, Literal

from ipamd.api.schema.common import Given, Shown
from ipamd.core.definition import DefinitionError, check_reclaim, check_seconds
from ipamd.core.model import Settings
from ipamd.errors import ApiError

MAX_EVENTS = 1_000_000_000


class SettingsBody(Given):
    """The settings to change; those left out stay."""

    inline_pools: bool | None = None
    cooldown_s: int | None = None
    reclaim: str | None = None
    node_lost_s: int | None = None
    evidence_grace_s: int | None = None
    tombstone_s: int | None = None
    events_days: int | None = None
    events_max: int | None = None

    def given(self) -> dict[str, Any]:
        """What is to be changed, checked. Raises ApiError."""
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}
        try:
            for name in ("cooldown_s", "node_lost_s", "evidence_grace_s", "tombstone_s"):
                if name in given:
                    check_seconds(given[name], name)
            if "reclaim" in given:
                given["reclaim"] = check_reclaim(given["reclaim"])
        except DefinitionError as error:
            raise ApiError("invalid_request", str(error)) from None
        _check_between(given, "events_days", 1, 36_500)
        _check_between(given, "events_max", 1, MAX_EVENTS)
        return given


class SettingsShown(Shown):
    """The settings that decide what is allocated or freed."""

    inline_pools: bool
    cooldown_s: int
    reclaim: str
    node_lost_s: int
    evidence_grace_s: int
    tombstone_s: int
    events_days: int
    events_max: int


class ReadyQuery(Given):
    """Of readiness: whether an ADD in this space could be proposed."""

    space: str | None = None


class HealthShown(Shown):
    """All is well."""

    status: Literal["ok"] = "ok"


def show_settings(settings: Settings) -> SettingsShown:
    """The settings in force."""
    return SettingsShown(**{name: getattr(settings, name) for name in SettingsShown.__struct_fields__})


def _check_between(given: dict[str, Any], name: str, least: int, most: int) -> None:
    if name in given and not least <= given[name] <= most:
        raise ApiError("invalid_request", f"{name} {given[name]} must be between {least} and {most}")
