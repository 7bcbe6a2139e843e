"""Owns random lives of three hosts as real servers see them: calls, lists and reports that come late, twice, spooled.

What is really so is kept here: which containers live, and whom each pod's address was last given to. A message is
made when something happens and sent then or later; whatever keeps it from a definite answer, it is sent again as it is.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.cluster import Away, Cluster, Got
from tests.support.wire import cni_conf

GRACE_S: Final = 1
PODS, HOSTS, STEPS = 6, 3, 30
DEFINITE_S = 180.0
LOOKS: Final = 10
NETWORK = "net"
LATE, CONTESTED = 114, 11
JSON: Final = {"Content-Type": "application/json"}


@dataclass(eq=False)
class Container:
    """One life of a container; made again under its id it is another one."""

    id: str
    pod: str
    host: str
    boot: str
    started_ns: int
    lives: bool = True


@dataclass
class Host:
    """A node: its boot, and the containers that were ever on it."""

    name: str
    boot: str
    containers: list[Container] = field(default_factory=list)

    @property
    def living(self) -> list[Container]:
        return [one for one in self.containers if one.lives]


@dataclass(frozen=True)
class Message:
    """Something under way. `boot`: the boot it dies with; None: it lies in a spool and outlives them all."""

    host: str
    boot: str | None
    send: Callable[[], object]


class Lives:
    """Three hosts, one pool of their own, and what is under way."""

    def __init__(self, cluster: Cluster, number: int, seed: int) -> None:
        self.cluster, self.chance, self.pool = cluster, random.Random(seed), f"lives-{number}"
        self.hosts = [Host(f"h{number}-{name}", str(uuid.uuid4())) for name in range(HOSTS)]
        self.pods = [f"r{number}/{name}" for name in range(PODS)]
        self.holder: dict[str, Container] = {}
        self.under_way: list[Message] = []
        self.did: Counter[str] = Counter()
        self.story: list[str] = []
        """What arrived, in order."""

        self._made = 0
        subnet = f"10.{200 + number // 256}.{number % 256}.0/27"
        self._definite("POST", "/v1/pools", {"name": self.pool, "subnet": subnet, "cooldown_s": 0})

    def play(self) -> None:
        """A life, and its end: the hosts look again, and what is bound is what lives. Raises AssertionError."""
        kinds = (
            (self.start, 6), (self.repeat, 2), (self.end, 2), (self.delete, 3), (self.restart, 3),
            (self.collect, 2), (self.look, 3), (self.reboot, 1), (self.deliver, 4),
        )  # fmt: skip
        steps = self.chance.choices([kind for kind, _ in kinds], [weight for _, weight in kinds], k=STEPS)
        for number, step in enumerate(steps):
            step()
            self.did[step.__name__] += 1
            if number % 5 == 0:
                self.the_living_have_what_they_were_given()
        self._look_until_the_dead_are_gone()
        self.the_living_have_what_they_were_given()
        self.nobody_else_has_anything()

    # What happens

    def start(self) -> None:
        """A runtime makes a container. Seldom it loses its patience: its ADD is under way still, behind its DEL maybe."""
        pod, host = self.chance.choice(self.pods), self.chance.choice(self.hosts)
        self._begin(pod, host, f"c{self._made}-{self.pool}", late=self.chance.random() < 0.15)

    def repeat(self) -> None:
        """The ADD of a living container comes again, with a start of its own."""
        if one := self._any_living():
            one.started_ns = self._now()
            self._add(one)()

    def end(self) -> None:
        """A namespace goes; nobody sends a DEL."""
        if one := self._any_living():
            one.lives = False
            self.story.append(f"end {one.pod} {one.id} {one.host}")

    def delete(self) -> None:
        """A DEL: at once or late, once or twice, spooled or not; or the one that undoes an ADD, with its start."""
        if one := self._any_living():
            one.lives = False
            started_ns = one.started_ns if self.chance.random() < 0.2 else self._now()
            self._del(one, started_ns, late=self.chance.random() < 0.4)

    def restart(self) -> None:
        """DEL, then ADD with the same id; the DEL may come last, and more than once."""
        if one := self._any_living():
            one.lives = False
            self._del(one, self._now(), late=self.chance.random() < 0.7)
            self._begin(one.pod, self._host(one.host), one.id)

    def collect(self) -> None:
        """A runtime's GC: its list is of now, and arrives now or later."""
        host = self.chance.choice(self.hosts)
        valid = [{"containerID": one.id, "ifname": "eth0"} for one in host.living]
        conf = json.loads(cni_conf(self.pool, NETWORK, "1.1.0")) | {"cni.dev/valid-attachments": valid}
        headers = self._headers(host.name, host.boot, self._now())

        def send() -> None:
            got = self._call("gc", headers, conf)
            assert got.code == 0, got.body
            self.story.append(
                f"GC {host.name} valid {[one['containerID'] for one in valid]} as of {headers['Ipamd-Started']}"
            )

        self._send_or_keep(Message(host.name, host.boot, send), late=self.chance.random() < 0.5)

    def look(self) -> None:
        """An agent asks what is bound, looks, does not see everything, and reports, now or later."""
        host = self.chance.choice(self.hosts)
        report = self._report(host, hides=self.chance.random() < 0.3)
        self._send_or_keep(Message(host.name, host.boot, report), late=self.chance.random() < 0.4)

    def reboot(self) -> None:
        """All that ran is gone, and so is what was under way but for what is spooled. The first call shows the boot."""
        host = self.chance.choice(self.hosts)
        host.boot = str(uuid.uuid4())
        for one in host.living:
            one.lives = False
        self.under_way = [one for one in self.under_way if one.host != host.name or one.boot is None]
        self._begin(self.chance.choice(self.pods), host, f"c{self._made}-{self.pool}")

    def deliver(self) -> None:
        """Something that is under way arrives; it may come once more."""
        if self.under_way:
            message = self.under_way[self.chance.randrange(len(self.under_way))]
            if self.chance.random() < 0.7:
                self.under_way.remove(message)
            message.send()

    # What must be so

    def the_living_have_what_they_were_given(self) -> None:
        """No live attachment is freed."""
        bound = self._bound()
        for pod, one in self.holder.items():
            if one.lives:
                assert bound.get(pod) == (one.id, one.host), f"{one} lives, bound: {bound.get(pod)}; {self._told(pod)}"

    def nobody_else_has_anything(self) -> None:
        """No dead one survives two reports and the grace."""
        left = self._left()
        assert not left, f"outlived two reports: {left}; {self._told(*left)}"

    # How it is done

    def _look_until_the_dead_are_gone(self) -> None:
        """Two reports and the grace do, in the log's time: it stands still while there is no leader, so then more."""
        for look in range(LOOKS):
            for host in self.hosts:
                self._report(host)()
            if look and not self._left():
                self.did[f"gone after looks: {look + 1}"] += 1
                return
            time.sleep(GRACE_S + 0.2)

    def _left(self) -> dict[str, tuple[str, str]]:
        """What is bound to somebody who does not live."""
        living = {pod: (one.id, one.host) for pod, one in self.holder.items() if one.lives}
        return {pod: bound for pod, bound in self._bound().items() if living.get(pod) != bound}

    def _begin(self, pod: str, host: Host, container_id: str, *, late: bool = False) -> None:
        self._made += 1
        one = Container(container_id, pod, host.name, host.boot, self._now(), lives=not late)
        host.containers.append(one)
        self._send_or_keep(Message(host.name, host.boot, self._add(one)), late=late)
        if late and self.chance.random() < 0.5:
            self._del(one, self._now(), late=False)

    def _add(self, one: Container) -> Callable[[], None]:
        namespace, _, name = one.pod.partition("/")
        args = f"IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}"
        headers = self._headers(one.host, one.boot, one.started_ns, one.id) | {"CNI-Args": args}

        def send() -> None:
            got = self._call("add", headers, json.loads(cni_conf(self.pool, NETWORK, "1.1.0")))
            self.did[f"add: {got.code}"] += 1
            self.story.append(f"ADD {one.pod} {one.id} {one.host} as of {headers['Ipamd-Started']}: {got.code}")
            assert got.code in (0, LATE, CONTESTED), got.body
            if got.code == 0 and self._bound().get(one.pod) == (one.id, one.host):
                self.holder[one.pod] = one
            elif got.code != 0 and one.started_ns == int(headers["Ipamd-Started"]):
                one.lives = False  # its runtime removes what it made

        return send

    def _del(self, one: Container, started_ns: int, *, late: bool) -> None:
        is_spooled = late and self.chance.random() < 0.5
        headers = self._headers(one.host, one.boot, started_ns, one.id)
        headers |= {"Ipamd-Spooled": "true"} if is_spooled else {}

        def send() -> None:
            got = self._call("del", headers, json.loads(cni_conf(self.pool, NETWORK, "1.1.0")))
            assert got.code == 0, got.body
            self.story.append(f"DEL {one.pod} {one.id} {one.host} as of {started_ns}{' spooled' * is_spooled}")

        self._send_or_keep(Message(one.host, None if is_spooled else one.boot, send), late=late)

    def _report(self, host: Host, *, hides: bool = False) -> Callable[[], None]:
        known = self._definite("GET", f"/v1/reservations?node={host.name}&limit=5000")
        bound = [one for item in known.json["items"] for one in item["attachments"] if one["node"] == host.name]
        alive = {one.id for one in host.living}
        listed = [
            {
                "cni_network": NETWORK, "container_id": one["container_id"], "ifname": "eth0",
                "alive": None if hides and self.chance.random() < 0.5 else one["container_id"] in alive,
            }
            for one in bound
        ]  # fmt: skip
        body = {"boot_id": host.boot, "index": int(known.headers["Ipamd-Index"]), "attachments": listed}

        def send() -> None:
            self._definite("POST", f"/v1/nodes/{host.name}/inventory", body)
            seen = [f"{line['container_id']}: {line['alive']}" for line in listed]
            self.story.append(f"report {host.name} as of index {body['index']} {seen}")

        return send

    def _send_or_keep(self, message: Message, *, late: bool) -> None:
        if late:
            self.under_way.append(message)
        else:
            message.send()

    def _told(self, *pods: str) -> list[str]:
        """What arrived about some pods, by their names, containers and hosts."""
        words = {*pods, *(one.id for host in self.hosts for one in host.containers if one.pod in pods)}
        return [line for line in self.story if any(word in line for word in words)]

    def _bound(self) -> dict[str, tuple[str, str]]:
        """Container id and node of each pod's binding."""
        items = self._definite("GET", f"/v1/reservations?pool={self.pool}&limit=5000").json["items"]
        return {item["pod_ref"]: (one["container_id"], one["node"]) for item in items for one in item["attachments"]}

    def _call(self, verb: str, headers: dict[str, str], conf: dict[str, Any]) -> Got:
        """A CNI call until somebody gives it a definite answer: that it is contested is one, no leader is none."""
        return self._insist(
            lambda: self.cluster.any().ask("POST", f"/cni/v1/{verb}", json.dumps(conf).encode(), 10.0, **headers),
            lambda got: got.status < 500 or "ipamctl reservation release" in str(got.json.get("msg")),
        )

    def _definite(self, method: str, path: str, body: object = None) -> Got:
        got = self._insist(
            lambda: self.cluster.any().ask(method, path, body, 10.0, **JSON), lambda got: got.status != 503
        )
        assert got.status < 300, f"{method} {path}: {got.status} {got.body!r}"
        return got

    def _insist(self, ask: Callable[[], Got], is_definite: Callable[[Got], bool]) -> Got:
        deadline, last = time.monotonic() + DEFINITE_S, ""
        while True:
            try:
                got = ask()
                if is_definite(got):
                    return got
                last = f"{got.status} {got.body!r}"
            except (Away, IndexError) as error:  # that member is away, or none runs
                last = repr(error)
            self.did["asked again"] += 1
            assert time.monotonic() < deadline, f"no definite answer within {DEFINITE_S} s: {last}"
            time.sleep(0.05)

    def _headers(self, host: str, boot: str, started_ns: int, container_id: str = "") -> dict[str, str]:
        own = {"CNI-ContainerID": container_id, "CNI-IfName": "eth0", "CNI-Netns": f"/run/netns/{container_id}"}
        call = {"Ipamd-Node": host, "Ipamd-Boot-Id": boot, "Ipamd-Started": str(started_ns)}
        return (own if container_id else {}) | call | {"CNI-Path": "/opt/cni/bin"}

    def _now(self) -> int:
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def _host(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    def _any_living(self) -> Container | None:
        living = [one for host in self.hosts for one in host.living]
        return self.chance.choice(living) if living else None
