"""Calls that come late, twice, compensated or from where the pod was before: in every order the living one wins.

Each story has six messages; all 720 orders of them are played, or those that its network can bring about. After every
step the laws hold (tests.core.world), no message has freed what it may not, and in the end the same container is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import pytest

from ipamd.core.model import OLDEST, Attachment, Start
from ipamd.core.outcomes import Code, Granted, Outcome, Refused
from tests.core.world import World, freed, granted, refused, stale

POD, OTHER = "t/a", "t/b"


class Message(NamedTuple):
    """A call as it travels: which verb of which container, and its start."""

    verb: str
    container: str
    at: int
    rest: tuple[tuple[str, Any], ...] = ()
    pod: str = POD

    def send(self, world: World) -> Outcome:
        if self.verb == "ADD":
            return world.add(self.pod, self.container, at=self.at, **dict(self.rest))
        return world.delete(self.container, at=self.at, **{key: value for key, value in self.rest if key != "uid"})


def add(container: str, at: int, pod: str = POD, **rest: Any) -> Message:
    return Message("ADD", container, at, tuple(rest.items()), pod)


def delete(container: str, at: int, **rest: Any) -> Message:
    return Message("DEL", container, at, tuple(rest.items()))


def orders(messages: Sequence[Message], possible: Callable[[Sequence[Message]], bool]) -> Iterator[Sequence[Message]]:
    found = [order for order in permutations(messages) if possible(order)]
    assert found
    return iter(found)


def anything(_: Sequence[Message]) -> bool:
    return True


def fresh() -> World:
    world = World()
    world.pool("p", "192.0.2.0/29", cooldown_s=300)
    return world


def play(world: World, order: Sequence[Message]) -> None:
    """Send messages, and check what each of them did."""
    known: set[str] = set()
    for message in order:
        before = world.attachment(POD)
        outcome = message.send(world)
        after = world.attachment(POD)
        if isinstance(outcome, Granted) and message.pod == POD:
            known.update(str(one.address) for one in outcome.grants[0].addresses)
        if message.verb == "DEL":
            _a_del_frees_only_its_own(world, message, before, after)
        elif isinstance(outcome, Refused):
            assert (outcome.code, before) == (Code.LATE, after)
        else:
            assert after is not None or message.pod == OTHER
    assert len(known) <= 1, "a pod keeps its address"


def _a_del_frees_only_its_own(
    world: World, message: Message, before: Attachment | None, after: Attachment | None
) -> None:
    if before is None or before == after:
        return
    assert after is None
    assert before.owner is not None
    rest = dict(message.rest)
    assert (before.owner.container_id, before.owner.node) == (message.container, rest.get("node", "n1"))
    boot = world.state.boot(before.owner.node or "", rest.get("boot", "b1"))
    assert before.start <= (Start(boot.order, message.at) if boot else OLDEST)


def container_of(world: World) -> str | None:
    mine = world.attachment(POD)
    return mine.owner.container_id if mine and mine.owner else None


LATE_AND_REPEATED = (
    add("c1", 10),
    add("c1", 12),
    delete("c1", 20),
    delete("c1", 40),
    add("c2", 30),
    add("other", 15, pod=OTHER),
)
COMPENSATED = (
    add("c1", 10),
    delete("c1", 10),
    add("c1", 12),
    delete("c1", 25),
    add("c2", 30),
    delete("c2", 30),
)
RETRIED_AFTER_COMPENSATION = (
    add("c1", 10),
    delete("c1", 10),
    add("c1", 30),
    add("other", 5, pod=OTHER),
    delete("other", 6),
    add("c0", 4),
)
SPOOLED_OVER_A_BOOT = (
    add("c1", 900, boot="b1"),
    delete("c1", 950, boot="b1", spooled=True),
    add("c2", 10, boot="b2"),
    add("c2", 12, boot="b2"),
    delete("c1", 20, boot="b2"),
    delete("c2", 990, boot="b1", spooled=True),
)
MOVED = (
    delete("c1", 20),
    add("c1", 12, uid="u1"),
    add("c1", 14, uid="u1", spooled=True),
    add("c2", 5, node="n2", uid="u2"),
    add("c2", 7, node="n2", uid="u2"),
    delete("c1", 22, spooled=True),
)
MOVED_THERE_AND_BACK = (
    add("c1", 10),
    delete("c1", 20),
    add("c2", 5, node="n2"),
    delete("c2", 99, node="n2"),
    add("c3", 40),
    delete("c1", 45),
)


def boots_in_order(order: Sequence[Message]) -> bool:
    """A node does not answer from its next boot before it was heard from the one before; what it spooled may lag."""
    boots = [dict(one.rest)["boot"] for one in order if not dict(one.rest).get("spooled")]
    return boots == sorted(boots)


def adds_in_order(order: Sequence[Message]) -> bool:
    """A pod starts on a node after it was seen on the one before: starts of two nodes do not compare."""
    adds = [one.container for one in order if one.verb == "ADD"]
    return adds == sorted(adds)


@pytest.mark.parametrize(
    ("messages", "possible", "living"),
    [
        pytest.param(LATE_AND_REPEATED, anything, "c2", id="late-and-repeated"),
        pytest.param(COMPENSATED, anything, None, id="compensated"),
        pytest.param(RETRIED_AFTER_COMPENSATION, anything, "c1", id="retried-after-compensation"),
        pytest.param(SPOOLED_OVER_A_BOOT, boots_in_order, "c2", id="spooled-over-a-boot"),
        pytest.param(MOVED_THERE_AND_BACK, adds_in_order, "c3", id="moved-there-and-back"),
    ],
)
def test_in_every_order_the_living_container_is_bound(
    messages: Sequence[Message], possible: Callable[[Sequence[Message]], bool], living: str | None
) -> None:
    for order in orders(messages, possible):
        world = fresh()
        play(world, order)
        assert container_of(world) == living, order


def test_in_every_order_a_pod_that_moved_stays_where_it_went() -> None:
    """The old node's ADD was seen once; what it sends again carries a uid that is not the newest, or is deleted."""
    for order in orders(MOVED, anything):
        world = fresh()
        world.add(POD, "c1", at=10, uid="u1")
        play(world, order)
        assert container_of(world) == "c2", order


def test_an_add_no_later_than_the_mark_of_its_del_is_refused() -> None:
    world = fresh()
    world.delete("c1", at=20)
    assert refused(world.add(POD, "c1", at=19)) is Code.LATE
    assert refused(world.add(POD, "c1", at=20)) is Code.LATE
    assert world.holders() == {}
    assert granted(world.add(POD, "c1", at=21)) == "192.0.2.1"


@pytest.mark.parametrize("other", [{"ifname": "net1"}, {"net": "m"}, {"node": "n2"}], ids=lambda it: next(iter(it)))
def test_a_mark_is_about_one_attachment(other: dict[str, Any]) -> None:
    world = fresh()
    world.delete("c1", at=20)
    assert granted(world.add(POD, "c1", at=10, **other)) == "192.0.2.1"


def test_a_mark_lives_its_time_and_the_latest_del_counts() -> None:
    world = fresh()
    world.settings(tombstone_s=60)
    world.delete("c1", at=20)
    world.wait(30)
    world.delete("c1", at=10)
    world.delete("c1", at=40)
    world.wait(59)
    assert refused(world.add(POD, "c1", at=30)) is Code.LATE
    world.wait(1)
    assert granted(world.add(POD, "c1", at=30)) == "192.0.2.1"


def test_a_del_that_started_before_the_binding_is_stale() -> None:
    world = fresh()
    world.add(POD, "c1", at=30)
    outcome = world.delete("c1", at=29)
    assert stale(outcome)
    assert freed(outcome) == []
    assert freed(world.delete("c1", at=30)) == ["192.0.2.1"]


def test_an_older_add_is_answered_and_leaves_the_newer_binding() -> None:
    world = fresh()
    world.add(POD, "c2", at=30)
    assert granted(world.add(POD, "c1", at=10)) == "192.0.2.1"
    mine = world.bound(POD)
    assert mine.owner is not None
    assert (mine.owner.container_id, mine.start, mine.generation) == ("c2", Start(1, 30), 2)
    assert freed(world.delete("c1", at=40)) == []


def test_an_older_add_does_not_make_its_uid_the_newest() -> None:
    """Else the living pod would be refused from then on as an earlier one."""
    world = fresh()
    world.add(POD, "c2", at=30, uid="u2")
    world.add(POD, "c1", at=10, uid="u1")
    assert granted(world.add(POD, "c2", at=31, uid="u2")) == "192.0.2.1"
    assert refused(world.add(POD, "c1", at=40, uid="u1")) is Code.LATE


def test_an_older_add_of_another_interface_does_not_either() -> None:
    world = fresh()
    world.add(POD, "c2", at=30, uid="u2")
    world.add(POD, "c1", at=10, uid="u1", ifname="net1")
    assert granted(world.add(POD, "c2", at=32, uid="u2", ifname="net1")) == "192.0.2.2"


def test_boots_are_ordered_as_they_were_first_seen() -> None:
    world = fresh()
    world.add(POD, "c1", boot="first", at=1000)
    world.add(POD, "c2", boot="second", at=5)
    assert world.bound(POD).start == Start(2, 5)
    assert stale(world.delete("c2", boot="first", at=2000))
    assert freed(world.delete("c2", boot="second", at=5)) == ["192.0.2.1"]


def test_a_spooled_call_of_an_unknown_boot_is_the_oldest() -> None:
    world = fresh()
    world.add(POD, "c1", boot="b1", at=1)
    assert stale(world.delete("c1", boot="lost", at=10**18, spooled=True))
    assert world.state.boot("n1", "lost") is None
    assert freed(world.delete("c1", boot="b1", at=2, spooled=True)) == ["192.0.2.1"]


def test_a_binding_without_start_goes_with_any_del() -> None:
    world = fresh()
    world.reserve(POD)
    world.add(POD, "c1", at=None, boot="lost", spooled=True)
    assert world.bound(POD).start == OLDEST
    assert freed(world.delete("c1", boot="other", at=1, spooled=True)) == ["192.0.2.1"]


def test_the_sixteen_newest_boots_are_remembered() -> None:
    world = fresh()
    for number in range(20):
        world.add(POD, f"c{number}", boot=f"b{number}", at=1)
    assert [boot.boot_id for boot in world.state.boots("n1")] == [f"b{number}" for number in range(4, 20)]
    assert world.bound(POD).start == Start(20, 1)


def test_boots_belong_to_their_node() -> None:
    world = fresh()
    world.add(POD, "c1", boot="b1", node="n1")
    world.add(OTHER, "c2", boot="b1", node="n2")
    assert [boot.order for node in ("n1", "n2") for boot in world.state.boots(node)] == [1, 1]
