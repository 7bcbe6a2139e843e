"""Owns the JSON of what administrators see: settings, tokens, events, CNI calls and health."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ipamd.api.schema.common import Given, Items, ReadQuery, Shown, maybe_when, when
from ipamd.core.definition import DefinitionError, check_reclaim, check_seconds
from ipamd.core.model import Event, Settings, Token
from ipamd.core.names import InvalidName, check_name, check_node
from ipamd.errors import ApiError
from ipamd.service.calls import CallRecord
from ipamd.service.tokens import Minted

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


class TokenBody(Given):
    """A token to make. A `node` token is bound to one node name. Without `ttl_s` it does not expire."""

    name: str
    role: Literal["reader", "operator", "admin", "node", "enrol"]
    node: str | None = None
    ttl_s: int | None = None

    def check(self) -> None:
        """Raises ApiError."""
        try:
            check_name(self.name, "name")
            if self.node is not None:
                check_node(self.node)
            if self.ttl_s is not None:
                check_seconds(self.ttl_s, "ttl_s")
        except (InvalidName, DefinitionError) as error:
            raise ApiError("invalid_request", str(error)) from None
        if self.role == "node" and self.node is None:
            raise ApiError(
                "invalid_request", "a token of the role node needs node, the name of the node it is bound to"
            )
        if self.role != "node" and self.node is not None:
            raise ApiError("invalid_request", f"node goes with the role node, not with {self.role}")


class TokenShown(Shown):
    """A token without its secret."""

    id: str
    name: str
    role: str
    node: str | None
    created: str
    expires: str | None


class MintedShown(TokenShown):
    """A new token. The secret is told this once; null where the request repeats one that was answered."""

    secret: str | None


class EventsQuery(ReadQuery):
    """Of a page of events: those after an index."""

    after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=5000)] = 500
    cursor: str | None = None


class EventShown(Shown, omit_defaults=True):
    """Something that happened."""

    index: int
    at: str
    kind: str
    by: str
    request_id: str
    space: str | None = None
    pool: str | None = None
    pod_ref: str | None = None
    ifname: str | None = None
    address: str | None = None
    node: str | None = None
    detail: str = ""


class CallShown(Shown):
    """A CNI call that this process answered; `code` 0: it succeeded; `spooled`: a DEL that was put aside."""

    at: str
    verb: str
    node: str
    pod_ref: str | None
    pools: tuple[str, ...]
    container_id: str | None
    ifname: str | None
    code: int
    ms: float
    request_id: str
    spooled: bool = False


class CallsShown(Items[CallShown], kw_only=True):
    """A list of calls, and how many DELs wait for the cluster in this process's spool."""

    spooled: int = 0


class ReadyQuery(Given):
    """Of readiness: whether an ADD in this space could be proposed."""

    space: str | None = None


class HealthShown(Shown):
    """All is well."""

    status: Literal["ok"] = "ok"


def show_settings(settings: Settings) -> SettingsShown:
    """The settings in force."""
    return SettingsShown(**{name: getattr(settings, name) for name in SettingsShown.__struct_fields__})


def show_token(token: Token) -> TokenShown:
    """A token without its secret."""
    return TokenShown(**_token_fields(token))


def show_minted(minted: Minted) -> MintedShown:
    """A new token."""
    return MintedShown(**_token_fields(minted.token), secret=minted.secret)


def show_event(event: Event) -> EventShown:
    """Something that happened."""
    return EventShown(
        index=event.index,
        at=when(event.at_ms),
        kind=event.kind.value,
        by=event.by,
        request_id=event.request_id,
        space=event.space,
        pool=event.pool,
        pod_ref=event.pod_ref,
        ifname=event.ifname,
        address=None if event.address is None else str(event.address),
        node=event.node,
        detail=event.detail,
    )


def show_call(record: CallRecord) -> CallShown:
    """A CNI call."""
    return CallShown(
        at=when(record.at_ms),
        verb=record.verb,
        node=record.node,
        pod_ref=record.pod_ref,
        pools=record.pools,
        container_id=record.container_id,
        ifname=record.ifname,
        code=record.code,
        ms=round(record.took_ms, 3),
        request_id=record.request_id,
        spooled=record.spooled,
    )


def _token_fields(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role.value,
        "node": token.node,
        "created": when(token.created_ms),
        "expires": maybe_when(token.expires_ms),
    }


def _check_between(given: dict[str, Any], name: str, least: int, most: int) -> None:
    if name in given and not least <= given[name] <= most:
        raise ApiError("invalid_request", f"{name} {given[name]} must be between {least} and {most}")
