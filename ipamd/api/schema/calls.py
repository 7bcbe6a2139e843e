"""Owns the JSON of the CNI calls that a process remembers."""

from __future__ import annotations

from ipamd.api.schema.common import Items, ListQuery, Shown, when
from ipamd.service.calls import CallRecord


class CallsQuery(ListQuery):
    """Of the list of calls. `pod_ref`: those for this pod; a name without the cluster's prefix will do."""

    pod_ref: str | None = None


class CallShown(Shown):
    """A CNI call that this process answered. `code` 0: it succeeded; else `msg` says why not, as the runtime was told.

    `spooled`: a DEL that was put aside.
    """

    at: str
    verb: str
    node: str
    pod_ref: str | None
    pools: tuple[str, ...]
    container_id: str | None
    ifname: str | None
    code: int
    msg: str | None
    ms: float
    request_id: str
    spooled: bool = False


class CallsShown(Items[CallShown], kw_only=True):
    """A list of calls, and how many DELs wait for the cluster in this process's spool."""

    spooled: int = 0


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
        msg=record.msg or None,
        ms=round(record.took_ms, 3),
        request_id=record.request_id,
        spooled=record.spooled,
    )
