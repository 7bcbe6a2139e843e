"""A reader of events that would miss some is told so."""

from __future__ import annotations

import pytest

from ipamd.core.model import Event, EventKind
from ipamd.errors import ApiError
from ipamd.service.events import refuse_gap


def events(*indexes: int) -> list[Event]:
    return [Event(index, 0, EventKind.BOUND, "me", "r") for index in indexes]


@pytest.mark.parametrize(("after", "found", "last"), [(0, (5, 6), 6), (4, (5, 6), 6), (6, (), 6), (0, (), 0)])
def test_going_on_without_a_gap(after: int, found: tuple[int, ...], last: int) -> None:
    refuse_gap(after, events(*found), last)


@pytest.mark.parametrize(("after", "found", "last"), [(3, (5, 6), 6), (7, (), 6), (1, (), 0), (4, (), 6)])
def test_a_gap_is_gone(after: int, found: tuple[int, ...], last: int) -> None:
    with pytest.raises(ApiError) as refused:
        refuse_gap(after, events(*found), last)
    assert refused.value.row.code == "gone"
