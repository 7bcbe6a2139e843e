"""Looking at namespaces never holds up the loop; one is gone only for who surely looks in the right place."""

from __future__ import annotations

import threading
import time

import pytest

from ipamd.core.addresses import parse_address
from ipamd.core.evidence import FIRST_NAMESPACE_INODE, Look
from ipamd.service import sandboxes
from ipamd.service.sandboxes import Sandbox, Sandboxes
from tests.support.eventually import until

PLACE = (24, 1)
FIRST = FIRST_NAMESPACE_INODE


class Slow:
    """Answers at once below /run, and elsewhere when it is let."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.seen: list[tuple[str, bool]] = []

    def look(self, path: str) -> Look:
        own = threading.current_thread() is threading.main_thread()
        self.seen.append((path, own))
        if not own:
            self.gate.wait(600)
        return Look(PLACE, 7)

    def inode(self, path: str) -> int | None:
        return self.look(path).inode

    def alive(self, path: str, inode: int | None) -> bool | None:
        return None if inode is None else bool(path)


class Directory:
    """A directory of namespaces by their paths."""

    def __init__(self, **inodes: int) -> None:
        self.inodes = {f"/run/netns/{name}": inode for name, inode in inodes.items()}
        self.place: tuple[int, int] | None = PLACE

    def look(self, path: str) -> Look:
        return Look(self.place, self.inodes.get(path), is_namespace=True) if self.place else Look(None)

    def inode(self, path: str) -> int | None:
        return self.inodes.get(path)

    def alive(self, path: str, inode: int | None) -> bool | None:
        return self.inodes.get(path) == inode


class Cache:
    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)
        self.contents: dict[str, bytes] = {}

    def names(self) -> frozenset[str]:
        return self._names

    def read(self, name: str) -> bytes | None:
        return self.contents.get(name)


def sandbox(name: str, inode: int | None, network: str | None = "k") -> Sandbox:
    return Sandbox(network, name, "eth0", f"/run/netns/{name}", inode, f"t/{name}", (parse_address("192.0.2.1"),))


async def seen(made: Sandboxes, *mine: Sandbox) -> dict[str, bool | None]:
    return {one.container_id: one.alive for one in await made.look(mine)}


async def test_paths_in_memory_are_looked_at_at_once() -> None:
    slow = Slow()
    for path in ("/run/netns/a", "/var/run/netns/a", "/proc/7/ns/net"):
        assert await Sandboxes(slow).inode(path) == 7
    assert all(own for _, own in slow.seen)


@pytest.mark.parametrize("path", ["/mnt/share/ns", "/run/../mnt/share/ns", "relative"])
async def test_other_paths_are_looked_at_in_a_thread_and_not_for_ever(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes, "_PATIENCE_S", 0.05)
    slow = Slow()
    began = time.monotonic()
    assert await Sandboxes(slow).inode(path) is None
    took_s = time.monotonic() - began
    await until(lambda: slow.seen)
    slow.gate.set()
    assert took_s < 300, "it was not waited for"
    monkeypatch.setattr(sandboxes, "_PATIENCE_S", 60.0)  # now it answers, on a busy machine not at once
    assert await Sandboxes(slow).inode(path) == 7
    assert slow.seen == [(path, False), (path, False)]


async def test_one_that_lives_proves_the_place_for_the_others() -> None:
    made = Sandboxes(Directory(a=FIRST))
    assert await seen(made, sandbox("a", FIRST), sandbox("b", FIRST + 1)) == {"a": True, "b": False}


async def test_an_add_proves_the_place() -> None:
    made = Sandboxes(directory := Directory(a=FIRST))
    assert await made.inode("/run/netns/a") == FIRST
    directory.inodes.clear()
    assert await seen(made, sandbox("a", FIRST)) == {"a": False}


async def test_an_empty_directory_proves_nothing() -> None:
    """A node without pods, or an agent that sees another directory than its runtime: nobody can tell which."""
    assert await seen(Sandboxes(Directory()), sandbox("a", FIRST)) == {"a": None}


async def test_a_directory_that_is_mounted_over_is_another_one() -> None:
    made = Sandboxes(directory := Directory(a=FIRST))
    await made.inode("/run/netns/a")
    directory.inodes.clear()
    for place in ((31, 1), None):
        directory.place = place
        assert await seen(made, sandbox("a", FIRST)) == {"a": None}


async def test_what_was_never_seen_cannot_be_told() -> None:
    made = Sandboxes(Directory(a=FIRST))
    assert await seen(made, sandbox("a", FIRST), sandbox("b", None)) == {"a": True, "b": None}


@pytest.mark.parametrize(
    ("record", "network", "alive"),
    [
        ("k-b-eth0", "k", None),
        ("m-b-eth0", "k", False),
        ("m-b-eth0", None, None),
        ("k-b-eth1", "k", False),
        ("k-bb-eth0", None, False),
    ],
)
async def test_a_record_saves_what_looks_gone(record: str, network: str | None, alive: bool | None) -> None:
    made = Sandboxes(Directory(a=FIRST), Cache(record))
    mine = (sandbox("a", FIRST), sandbox("b", FIRST + 1, network))
    assert (await seen(made, *mine))["b"] is alive
    (_, other) = await made.look(mine, with_records=False)
    assert other.alive is False


async def test_who_lived_and_is_not_known_any_more_is_reported_while_it_lives() -> None:
    made = Sandboxes(directory := Directory(a=FIRST, b=FIRST + 1))
    await made.look([sandbox("a", FIRST), sandbox("b", FIRST + 1)])
    lines = await made.look([sandbox("b", FIRST + 1)])
    assert [(one.container_id, one.alive, one.pod_ref) for one in lines] == [("b", True, "t/b"), ("a", True, "t/a")]
    assert lines[1].addresses == (parse_address("192.0.2.1"),)
    del directory.inodes["/run/netns/a"]
    assert await seen(made, sandbox("b", FIRST + 1)) == {"b": True}
    directory.inodes["/run/netns/a"] = FIRST
    assert await seen(made, sandbox("b", FIRST + 1)) == {"b": True}


async def test_who_was_deleted_is_nobodys_business() -> None:
    made = Sandboxes(Directory(a=FIRST))
    await made.look([sandbox("a", FIRST)])
    made.forget("a", "eth0")
    assert await seen(made) == {}


def attachment_of(pool: int, name: str, inode: int, netns: str = "") -> Sandbox:
    """A container's interface in one of the pools that it has addresses of."""
    return sandbox(name, inode)._replace(
        netns=f"/run/netns/{netns or name}", addresses=(parse_address(f"192.0.2.{pool}"),)
    )


@pytest.mark.parametrize("order", [1, -1])
async def test_a_container_that_began_anew_under_its_id_lives_whatever_else_it_had(order: int) -> None:
    """It had addresses of two pools; its configuration names one now, and its namespace is another one."""
    made = Sandboxes(Directory(new=FIRST + 1))
    mine = [attachment_of(1, "c", FIRST, "old"), attachment_of(2, "c", FIRST + 1, "new")][::order]
    (line,) = await made.look(mine)
    assert line.alive is True
    assert line.addresses == (parse_address("192.0.2.2"),)


async def test_a_container_that_lives_has_its_addresses_of_all_pools() -> None:
    made = Sandboxes(Directory(c=FIRST))
    both = [attachment_of(1, "c", FIRST), attachment_of(2, "c", FIRST)]
    (line,) = await made.look(both)
    assert [str(one) for one in line.addresses] == ["192.0.2.1", "192.0.2.2"]


async def test_an_address_that_was_given_up_is_told_though_its_container_has_another_one() -> None:
    made = Sandboxes(Directory(c=FIRST))
    both = [attachment_of(1, "c", FIRST), attachment_of(2, "c", FIRST)]
    await made.look(both)
    (line,) = await made.look(both[1:])
    assert sorted(map(str, line.addresses)) == ["192.0.2.1", "192.0.2.2"]


async def test_what_the_cluster_has_forgotten_is_told_by_the_runtimes_records() -> None:
    def recalled(data: bytes) -> Sandbox | None:
        name = data.decode()
        return None if name == "x" else sandbox(name, 0)._replace(netns_inode=None)

    cache = Cache("k-a-eth0", "k-b-eth0", "k-gone-eth0", "other")
    cache.contents = {"k-a-eth0": b"a", "k-b-eth0": b"b", "k-gone-eth0": b"gone", "other": b"x"}
    made = Sandboxes(Directory(a=FIRST, b=FIRST + 1), cache, recalled)
    mine = [sandbox("a", FIRST)]
    assert [one.container_id for one in await made.look(mine)] == ["a"]
    listed = {one.container_id: one for one in await made.look(mine, with_forgotten=True)}
    assert set(listed) == {"a", "b"}, "the namespace of the third is gone"
    assert (listed["b"].alive, listed["b"].netns, listed["b"].netns_inode) == (True, "/run/netns/b", FIRST + 1)
    assert [one.container_id for one in await made.look(mine)] == ["a", "b"], "it is remembered as one that lived"
