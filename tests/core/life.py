"""Owns what is really so on a few hosts: which containers live, what their runtimes and agents say, what is under way.

Every message may be late, and some come twice. What is true is kept by hand; the state under test never tells it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ipamd.core.commands import Add, Binding, CallStart, Del, PoolRequest, Reclaim, ReclaimCause, Report
from ipamd.core.inventory import Inventory, Listed, seen_of
from ipamd.core.model import Attachment, Owner, Start
from ipamd.core.outcomes import Code, Granted, Refused
from tests.core.world import ORIGIN, World

GRACE_S = 10
POOL = "p"


@dataclass(eq=False)
class Container:
    """One life of a container: from an ADD to its end. Made again under its id it is another one."""

    id: str
    pod: str
    uid: str
    node: str
    call: CallStart
    inode: int
    lives: bool = True
    """Its namespace is there, and its runtime has not begun to remove it."""

    address: str | None = None

    @property
    def owner(self) -> Owner:
        return Owner(self.id, self.node, "k", f"/run/netns/{self.id}", self.inode)

    @property
    def add(self) -> Add:
        return Add(ORIGIN, (PoolRequest(POOL),), self.pod, "eth0", self.owner, self.call, self.uid)


@dataclass
class Host:
    """A node: its boot, and the containers that run or ran on it."""

    name: str
    boot: str
    containers: list[Container] = field(default_factory=list)

    def living(self) -> list[Container]:
        return [one for one in self.containers if one.lives]

    def sees(self, attachment: Attachment) -> bool:
        """Whether the namespace of a binding is there."""
        owner = attachment.owner
        return owner is not None and any(
            one.lives and (one.id, one.inode) == (owner.container_id, owner.netns_inode) for one in self.containers
        )


@dataclass(frozen=True)
class Said:
    """What an agent found at some moment: on its way, maybe for long."""

    host: str
    boot: str
    index: int
    listed: tuple[Listed, ...]


Message = Container | Del | Said | Report | Reclaim


class Life:
    """Three hosts, one pool, and what is under way between them."""

    def __init__(self) -> None:
        self.world = World()
        self.world.pool(POOL, "192.0.2.0/28", cooldown_s=0)
        self.world.settings(evidence_grace_s=GRACE_S, tombstone_s=100_000)
        self.hosts = {name: Host(name, f"{name}-1") for name in ("n1", "n2", "n3")}
        self.under_way: list[Message] = []
        self.holder: dict[str, Container] = {}
        """The container that each pod's address was last given to."""

        self.said_gone: dict[Binding, int] = {}
        """Since when every report has said of a dead binding that it is gone."""

        self.first_gone: dict[Binding, int] = {}
        """When a report arrived that was the first to say so, whatever was said since."""

        self.uids: dict[str, list[str]] = {}
        """The uids that each pod has had."""

        self._made = self._ns = 0

    # What happens

    def start(self, pod: str, host: Host, again: Container | None = None, *, late: bool = False) -> None:
        """A runtime makes a container and sends its ADD. Late: it gives up, and the ADD is under way still."""
        self._made += 1
        id_ = again.id if again else f"c{self._made}"
        on_this = [one for one in host.containers if one.pod == pod]
        uid = on_this[-1].uid if on_this and self.is_newest(pod, on_this[-1].uid) else f"u{self._made}"
        made = Container(id_, pod, uid, host.name, self.now(host), 1_000 + self._made, lives=not late)
        host.containers.append(made)
        self.uids.setdefault(pod, []).append(uid)
        if late:
            self.under_way.append(made)
        else:
            self.deliver_add(made)

    def is_newest(self, pod: str, uid: str) -> bool:
        return self.uids[pod][-1] == uid

    def repeat(self, one: Container) -> None:
        """A runtime sends the ADD of a living container again."""
        host = self.hosts[one.node]
        one.call = self.now(host)
        self.deliver_add(one)

    def end(self, one: Container) -> None:
        """A namespace goes; nobody sends a DEL."""
        one.lives = False

    def delete(self, one: Container, *, spooled: bool, late: bool, compensates: bool = False) -> None:
        """A runtime removes a container. A compensating DEL has the start of the ADD that it undoes."""
        one.lives = False
        call = one.call if compensates else self.now(self.hosts[one.node])
        sent = Del(ORIGIN, one.node, "k", one.id, "eth0", CallStart(call.boot_id, call.ns, spooled))
        if late:
            self.under_way.append(sent)
        else:
            self.world.run(sent)

    def collect(self, host: Host, valid: frozenset[str], *, late: bool) -> None:
        """A runtime's GC with a list, and the look of the host that answers it."""
        bindings = tuple(
            Binding(one.id, one.generation)
            for one in self.bound_on(host)
            if one.owner is not None and one.owner.container_id not in valid and not host.sees(one)
        )
        sent = Reclaim(ORIGIN, ReclaimCause.GC, host.name, bindings, self.now(host))
        if late:
            self.under_way.append(sent)
        else:
            self.world.run(sent)

    def look(self, host: Host, hidden: frozenset[int], *, late: bool) -> None:
        """An agent asks what is bound here, looks (some of it is hidden from it), and reports."""
        listed = tuple(
            Listed("k", one.owner.container_id or "", "eth0", None if at in hidden else host.sees(one))
            for at, one in enumerate(self.bound_on(host))
            if one.owner is not None
        )
        said = Said(host.name, host.boot, self.world.log_index, listed)
        if late:
            self.under_way.append(said)
        else:
            self._report_at_once(host, said)

    def reboot(self, host: Host) -> None:
        """All that ran is gone; calls that waited in memory are gone with it."""
        number = int(host.boot.rpartition("-")[2])
        host.boot = f"{host.name}-{number + 1}"
        for one in host.containers:
            one.lives = False
        self.under_way = [one for one in self.under_way if not self._dies_with(host, one)]

    def deliver(self, at: int, *, keeps: bool) -> None:
        """Something that is under way arrives; it may come once more."""
        message = self.under_way[at]
        if not keeps:
            del self.under_way[at]
        if isinstance(message, Container):
            self.deliver_add(message)
        elif isinstance(message, Said):
            self._propose(message)
        elif isinstance(message, Report):
            self._carry_out(message)
            self.said_gone.clear()  # what it has begun anew is not known here
        else:
            self.world.run(message)

    # How it is done

    def now(self, host: Host) -> CallStart:
        """The start of a call: boot, and a time that goes on with each."""
        self._ns += 1
        return CallStart(host.boot, self.world.log_ms * 1_000 + self._ns)

    def deliver_add(self, one: Container) -> None:
        before = self.attachment(one.pod)
        outcome = self.world.run(one.add)
        if isinstance(outcome, Refused):
            self._refused(one, outcome, before)
            return
        assert isinstance(outcome, Granted)
        after = self.attachment(one.pod)
        assert after is not None
        if after.owner == one.owner and after.start.ns == one.call.ns:
            self._displaces(one, before)
            one.address = str(outcome.grants[0].addresses[0].address)
            self.holder[one.pod] = one

    def _refused(self, one: Container, outcome: Refused, before: Attachment | None) -> None:
        """A runtime whose ADD is refused removes what it made."""
        if outcome.code is Code.CONTESTED:
            assert before is not None
            assert before.owner is not None
            assert before.owner.node != one.node
        else:
            assert outcome.code in (Code.LATE, Code.POOL_EXHAUSTED)
        one.lives = False

    def _propose(self, said: Said) -> None:
        """A server has a report: what of it is new is on its way into the log."""
        inventory = Inventory(said.host, said.boot, said.index, said.listed)
        seen = tuple(seen_of(self.world.state, inventory, self.world.log_ms))
        self.under_way.append(Report(ORIGIN, said.host, said.boot, said.index, seen))

    def _displaces(self, one: Container, before: Attachment | None) -> None:
        """Who held the address before may only be displaced by what came later on its host, or is not seen alive."""
        old = self.holder.get(one.pod)
        if old is None or old is one or not old.lives or before is None:
            return
        if old.node == one.node:
            assert self.start_of(old) < self.start_of(one)
        else:
            assert not self.is_seen_alive(old, before)

    def is_seen_alive(self, old: Container, before: Attachment) -> bool:
        """Whether its node's last report, which is fresh, saw it alive."""
        node, sighting = self.world.state.node(old.node), self.world.state.sighting(before.id)
        if node is None or node.clash or node.reported_log_ms is None or sighting is None:
            return False
        is_fresh = self.world.log_ms - node.reported_log_ms <= 90_000
        return is_fresh and sighting.generation == before.generation and sighting.alive is True

    def start_of(self, one: Container) -> Start:
        boot = self.world.state.boot(one.node, one.call.boot_id)
        return Start(boot.order if boot else 0, one.call.ns)

    def _report_at_once(self, host: Host, said: Said) -> None:
        bound = self._bindings(host)
        unknown = {line.container_id for line in said.listed if line.alive is None}
        self._report(said)
        if self.is_clash(host):
            return
        now = self.world.log_ms
        for binding, attachment in bound.items():
            assert attachment.owner is not None
            if host.sees(attachment) or attachment.owner.container_id in unknown:
                self.said_gone.pop(binding, None)
            elif now - self.said_gone.setdefault(binding, now) >= GRACE_S * 1000:
                left = self.world.state.attachment_by_id(binding.attachment_id)
                assert left is None or left.owner is None, f"{attachment} is dead and outlived two reports"

    def _report(self, said: Said) -> None:
        inventory = Inventory(said.host, said.boot, said.index, said.listed)
        seen = tuple(seen_of(self.world.state, inventory, self.world.log_ms))
        self._carry_out(Report(ORIGIN, said.host, said.boot, said.index, seen))

    def _carry_out(self, report: Report) -> None:
        """An entry with a report: what it frees was said to be gone a grace ago already."""
        host, now = self.hosts[report.node], self.world.log_ms
        before = self._bindings(host)
        self.world.run(report)
        for binding in before.keys() - self._bindings(host).keys():
            assert now - self.first_gone[binding] >= GRACE_S * 1000, f"{before[binding]} was freed too soon"
        for seen in report.seen:
            if seen.alive is False:
                self.first_gone.setdefault(Binding(seen.attachment_id, seen.generation), now)

    def _bindings(self, host: Host) -> dict[Binding, Attachment]:
        return {Binding(one.id, one.generation): one for one in self.bound_on(host)}

    def _dies_with(self, host: Host, message: Message) -> bool:
        if isinstance(message, Container):
            return message.node == host.name
        if isinstance(message, Said):
            return message.host == host.name
        if isinstance(message, (Reclaim, Report)):
            return message.node == host.name
        return message.node == host.name and message.call is not None and not message.call.spooled

    def is_clash(self, host: Host) -> bool:
        node = self.world.state.node(host.name)
        return node is not None and node.clash

    def bound_on(self, host: Host) -> list[Attachment]:
        return list(self.world.state.attachments_of_node(host.name, 0, 1_000))

    def attachment(self, pod: str) -> Attachment | None:
        return self.world.attachment(pod, pool=POOL)

    # What must be so

    def check(self) -> None:
        """Who lives and was given an address last under its pod's name has it."""
        holders = self.world.holders(POOL)
        for pod, one in self.holder.items():
            if not one.lives:
                continue
            mine = self.attachment(pod)
            assert mine is not None, f"{one} lives and holds nothing"
            assert mine.owner == one.owner, f"{one} lives and {mine.owner} is bound"
            assert holders.get(one.address or "") == f"{pod} eth0"
