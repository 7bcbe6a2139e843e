"""Owns what a new boot of a node means to what was bound before: it is suspect until it is seen alive or bound anew."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ipamd.core.draft import Draft
from ipamd.core.model import Attachment, EventKind
from ipamd.core.values import replace

SUSPECT_LIMIT = 5_000
"""How many attachments one boot makes suspect at most: far more than a host runs, and an entry's work stays bounded."""

_PAGE = 500


def suspect_older(draft: Draft) -> None:
    """Mark what the nodes that began a new boot held before. Comes last, and leaves alone what was written."""
    for name in draft.booted:
        host = draft.node(name)
        if host is None or host.clash:
            continue
        written = {id_ for change in draft.changes if (id_ := _attachment_id(change)) is not None}
        older = (
            one
            for one in attachments_on(draft, name)
            if one.start.boot < host.newest_boot and not one.suspect and one.id not in written
        )
        count = 0
        for one in islice(older, SUSPECT_LIMIT):
            draft.put(replace(one, suspect=True))
            count += 1
        if not count:
            continue
        detail = f"boot {host.newest_boot} of those seen; {count} interfaces bound before it are suspect"
        draft.event(EventKind.NODE_REBOOTED, node=name, detail=detail)


def attachments_on(draft: Draft, node: str) -> Iterator[Attachment]:
    """All attachments bound on a node, by id."""
    after = 0
    while page := draft.view.attachments_of_node(node, after, _PAGE):
        yield from page
        after = page[-1].id


def _attachment_id(change: object) -> int | None:
    record = getattr(change, "record", None)
    return record.id if isinstance(record, Attachment) else None
