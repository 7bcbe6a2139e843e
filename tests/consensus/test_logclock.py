"""The wall clock in stamps: it never falls, and a clock that the majority does not share raises nothing."""

from __future__ import annotations

from ipamd.consensus.logclock import LogClock
from tests.consensus.journals import ManualClock

DAY_MS = 86_400_000


def test_it_is_believed_until_a_majority_says_otherwise() -> None:
    clock = ManualClock(5.0, 1000)
    log = LogClock(clock)
    assert log.stamp().wall_ms == 1000
    clock.now_wall_ms += DAY_MS
    assert log.stamp().wall_ms == 1000 + DAY_MS
    log.judge_wall(is_right=False)
    clock.now_wall_ms += DAY_MS
    assert log.stamp().wall_ms == 1000 + DAY_MS
    log.judge_wall(is_right=True)
    assert log.stamp().wall_ms == 1000 + 2 * DAY_MS


def test_what_was_vouched_for_goes_on_from_there_and_does_not_jump() -> None:
    clock = ManualClock(5.0, 1000)
    log = LogClock(clock)
    log.judge_wall(is_right=True)
    clock.now_s += 3600
    clock.now_wall_ms += 3_600_000 + 60_000
    assert log.stamp().wall_ms == 3_661_000
    clock.now_wall_ms += 1
    assert log.stamp().wall_ms == 3_661_000, "a jump, until a majority has it too"
    log.judge_wall(is_right=True)
    assert log.stamp().wall_ms == 3_661_001


def test_it_never_falls_whatever_is_judged() -> None:
    clock = ManualClock(5.0, 5000)
    log = LogClock(clock)
    walls = []
    for is_right, wall_ms in ((True, 5000), (True, 1000), (False, 9000), (True, 7000), (True, 2000)):
        clock.now_wall_ms = wall_ms
        log.judge_wall(is_right=is_right)
        walls.append(log.stamp().wall_ms)
    assert walls == [5000, 5000, 5000, 7000, 7000]
