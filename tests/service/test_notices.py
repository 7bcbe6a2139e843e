"""What is said once."""

from __future__ import annotations

from ipamd.service.notices import Notices


def test_a_text_is_new_once() -> None:
    notices = Notices()
    assert [notices.is_new(text) for text in ("a", "b", "a", "a", "b")] == [True, True, False, False, False]


def test_the_oldest_is_forgotten_before_there_are_too_many() -> None:
    notices = Notices()
    assert all(notices.is_new(str(number)) for number in range(1_001))
    assert not notices.is_new("1")
    assert notices.is_new("0")
