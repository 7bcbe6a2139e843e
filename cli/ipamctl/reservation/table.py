"""Owns how reservations look as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ipamctl.render import columns, fields

_TITLES = ("POOL", "POD", "INTERFACE", "ADDRESSES", "STATE", "NODE", "CONTAINER", "SINCE")


def reservation_table(reservation: Mapping[str, Any]) -> str:
    """One reservation with its attachments."""
    plain = [(name, value) for name, value in reservation.items() if name != "attachments"]
    return f"{fields(plain)}\n\n{_attachments_table(reservation)}"


def reservations_table(reservations: Mapping[str, Any]) -> str:
    """A list of reservations, a line an attachment."""
    return columns(_TITLES, (row for item in reservations["items"] for row in _rows(item)))


def _rows(item: Mapping[str, Any]) -> Iterator[list[Any]]:
    for attachment in item["attachments"] or [{}]:
        container = attachment.get("container_id")
        yield [
            item["pool"],
            item["pod_ref"],
            attachment.get("ifname"),
            attachment.get("addresses"),
            _state(item, attachment),
            attachment.get("node"),
            container[:13] if container else None,
            attachment.get("since"),
        ]


def _state(item: Mapping[str, Any], attachment: Mapping[str, Any]) -> str:
    state = str(attachment.get("state") or "-")
    return f"{state}, pinned" if item.get("pinned") else state


def _attachments_table(reservation: Mapping[str, Any]) -> str:
    names = ("ifname", "addresses", "state", "generation", "node", "cni_network", "container_id", "since")
    rows = [[attachment.get(name) for name in names] for attachment in reservation["attachments"]]
    return columns([name.upper() for name in names], rows)
