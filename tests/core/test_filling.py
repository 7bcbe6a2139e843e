"""What an import left open, when nodes report: lines find it, the first one fills it in, and evidence frees it."""

from __future__ import annotations

from ipamd.core.commands import Binding, Claim, Reclaim, ReclaimCause, Report
from ipamd.core.inventory import Inventory, Listed, seen_of, strangers
from ipamd.core.model import Attachment, EventKind, Owner
from ipamd.core.outcomes import Code, Outcome
from tests.core.bringing import add, bring, found, inline, of_container
from tests.core.world import ORIGIN, World, addresses, freed, refused

POOL = "192.0.2.0-28"
GRACE_S = 120


def lines(*texts: str, alive: bool | None = True) -> tuple[Listed, ...]:
    """Lines from `CONTAINER IFNAME [NETWORK]`."""
    parts = [[*text.split(), None][:3] for text in texts]
    return tuple(Listed(network, container or "", ifname or "", alive) for container, ifname, network in parts)


def report(world: World, *listed: Listed, node: str = "n1", boot: str | None = "b1") -> Outcome:
    inventory = Inventory(node, boot, world.log_index, listed)
    seen = tuple(seen_of(world.state, inventory, world.log_ms))
    return world.run(Report(ORIGIN, node, boot, inventory.index, seen))


def news(world: World, *listed: Listed) -> int:
    """How much of a report the state does not know yet."""
    return len(seen_of(world.state, Inventory("n1", "b1", world.log_index, listed), world.log_ms))


def of(world: World, container: str = "c1", ifname: str = "eth0") -> list[Attachment]:
    return list(world.state.attachments_of_container(container, ifname))


def test_the_first_report_fills_in_all_that_is_open() -> None:
    world = World()
    bring(world, of_container("192.0.2.6", ifname=None))
    assert news(world, *lines("c1 net1 k")) == 1
    report(world, *lines("c1 net1 k"))
    (mine,) = of(world, ifname="net1")
    assert (mine.ifname, mine.owner, mine.generation) == ("net1", Owner("c1", "n1", "k"), 1)
    assert world.holders(POOL) == {"192.0.2.6": "_/n1/c1 net1"}
    event = world.events()[-1]
    assert (event.kind, event.node, event.pod_ref, event.ifname) == (EventKind.CLAIMED, "n1", "_/n1/c1", "net1")
    assert news(world, *lines("c1 net1 k")) == 0


def test_a_second_node_does_not_get_what_the_first_has_filled_in() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"))
    report(world, *lines("c1 eth0 k"))
    report(world, *lines("c1 eth0 k"), node="n2", boot="b9")
    (mine,) = of(world)
    assert mine.owner == Owner("c1", "n1", "k")


def test_an_interface_that_is_open_on_a_known_node_is_filled_in() -> None:
    world = World()
    bring(world, found("192.0.2.6", ifname=None, node="n1", net="k"))
    report(world, *lines("c1 eth0 k"))
    assert world.holders(POOL) == {"192.0.2.6": "t/a eth0"}
    assert news(world, *lines("c1 eth0 k")) == 0


def test_a_line_of_another_network_fills_in_nothing() -> None:
    world = World()
    bring(world, found("192.0.2.6", ifname=None, net="k"))
    before = of(world)
    report(world, *lines("c1 eth0 other"))
    assert of(world) == before


def test_two_open_interfaces_of_a_pod_get_two_names() -> None:
    world = World()
    bring(world, found("192.0.2.6", ifname=None), found("192.0.2.7", ifname=None))
    for _ in range(2):
        report(world, *lines("c1 eth0 k", "c1 net1 k"))
    assert sorted(world.holders(POOL).values()) == ["t/a eth0", "t/a net1"]
    assert news(world, *lines("c1 eth0 k", "c1 net1 k")) == 0


def test_a_name_that_a_sibling_has_is_not_given_again() -> None:
    """And the report that cannot give it makes no entry each time."""
    world = World()
    bring(world, found("192.0.2.6"), found("192.0.2.7", ifname=None, container="c2"))
    report(world, *lines("c1 eth0 k", "c2 eth0 k"))
    assert world.holders(POOL) == {"192.0.2.6": "t/a eth0", "192.0.2.7": "t/a :1"}
    assert news(world, *lines("c1 eth0 k", "c2 eth0 k")) == 0


def test_one_claim_of_two_open_interfaces_names_one() -> None:
    world = World()
    bring(world, found("192.0.2.6", ifname=None), found("192.0.2.7", ifname=None))
    bindings = tuple(Binding(one.id, one.generation) for one in of(world))
    world.run(Claim(ORIGIN, bindings, "eth0", "n1", "k"))
    assert sorted(world.holders(POOL).values()) == ["t/a :2", "t/a eth0"]


def test_no_interface_gets_a_name_that_is_none() -> None:
    world = World()
    bring(world, found("192.0.2.6", ifname=None))
    report(world, *lines("c1 :1 k", "c1 a/b k"))
    (mine,) = of(world)
    assert (mine.ifname, mine.owner) == (":1", Owner("c1", "n1", "k"))


def test_two_reports_free_it_whatever_was_open() -> None:
    world = World()
    bring(world, of_container("192.0.2.6", ifname=None), of_container("192.0.2.7", "c2"))
    gone = lines("c1 eth0 k", "c2 eth0 k", alive=False)
    assert freed(report(world, *gone)) == []
    world.wait(GRACE_S)
    assert freed(report(world, *gone)) == ["192.0.2.6", "192.0.2.7"]
    assert world.holders(POOL) == {}


def test_one_living_interface_keeps_what_may_be_it() -> None:
    world = World()
    bring(world, found("192.0.2.6", ifname=None))
    seen = (*lines("c1 eth0 k", alive=False), *lines("c1 net1 k"))
    for _ in range(3):
        assert freed(report(world, *seen)) == []
        world.wait(GRACE_S)
    assert world.holders(POOL) == {"192.0.2.6": "t/a net1"}


def test_somebody_else_claims_by_life_alone() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"))
    before = of(world)
    report(world, *lines("c1 eth0 k", alive=None), boot=None)
    assert of(world) == before
    report(world, *lines("c1 eth0 k"), boot=None)
    assert of(world)[0].owner == Owner("c1", "n1", "k")


def test_a_look_from_before_the_import_says_nothing_of_it() -> None:
    world = World()
    before = world.log_index
    bring(world, of_container("192.0.2.6"))
    inventory = Inventory("n1", "b1", before, lines("c1 eth0 k", alive=False))
    assert seen_of(world.state, inventory, world.log_ms) == []


def test_living_containers_of_an_import_are_no_strangers() -> None:
    world = World()
    bring(world, of_container("192.0.2.6", ifname=None))
    (mine,) = lines("c1 eth0 k")
    mine = mine._replace(addresses=addresses("192.0.2.6"))
    assert strangers(world.state, Inventory("n1", "b1", 1, (mine,))) == []


def test_what_was_claimed_by_a_report_is_spared_by_the_release_of_the_rest() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"), of_container("192.0.2.7", "c2"))
    bindings = tuple(Binding(one.id, one.generation) for name in ("c1", "c2") for one in of(world, name))
    report(world, *lines("c1 eth0 k"))
    assert freed(world.run(Reclaim(ORIGIN, ReclaimCause.UNCLAIMED, None, bindings))) == ["192.0.2.7"]


def test_a_contested_add_leaves_what_it_would_have_adopted() -> None:
    """It is refused: it adopts no open interface, and the pool that it describes for another address is not made."""
    world = World()
    bring(world, found("192.0.2.6", ifname=None, node="n1", net="k"))
    report(world, Listed("k", "c1", ":1", alive=True))
    before, told = world.holders(POOL), world.state.last_event
    outcome = add(world, "t/a", "c2", inline("198.51.100.0/28"), inline(), node="n2")
    assert refused(outcome) is Code.CONTESTED
    assert world.holders(POOL) == before == {"192.0.2.6": "t/a :1"}
    assert world.state.pool("198.51.100.0-28") is None
    assert world.kinds(told) == [EventKind.CONTESTED]
    assert world.state.node("n2") is None


def test_a_node_that_an_import_names_is_not_lost_for_its_silence() -> None:
    world = World()
    bring(world, of_container("192.0.2.6", node="n1"))
    world.wait(10**6)
    world.lose("n1")
    assert world.node().lost_log_ms is None


def test_a_reboot_makes_suspect_what_an_import_brought_to_the_node() -> None:
    world = World()
    bring(world, of_container("192.0.2.6"))
    report(world, *lines("c1 eth0 k"))
    assert not of(world)[0].suspect
    report(world, boot="b2")
    assert of(world)[0].suspect
    report(world, *lines("c1 eth0 k"), boot="b2")
    assert not of(world)[0].suspect
