"""The story ipamd is made for, played with a real server, a real agent and a real plugin: `make demo`.

Three pods get their addresses, the node goes down without a DEL, the pods come back under their names and get the same
addresses, although the pool is full. Then another node dies for good, and what it held is given back by one command.
Everything happens in a temporary directory that is removed at the end.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from demo.cni import CNI_BIN, Answer, Namespaces, Runtime, Sandbox, inside, why_no_bridge
from demo.dead_node import DeadNode
from demo.server import BIN, Server
from demo.telling import expect, fail, shell, title, told

POOL = "storage"
SUBNET, FIRST, LAST = "10.128.165.0/24", "10.128.165.32", "10.128.165.34"
PODS = ("default/asdasd-0", "default/asdasd-1", "default/asdasd-2")
FOURTH = "default/asdasd-3"


class Story:
    """What happens, in order."""

    def __init__(self, folder: Path, namespaces: Namespaces, no_bridge: str | None) -> None:
        self.folder = folder
        self.server = Server(folder)
        self.plugins = folder / "bin"
        self.namespaces = namespaces
        self.no_bridge = no_bridge
        self.runtime = Runtime((self.plugins, CNI_BIN), f"unix:{self.server.socket}")
        self.lives = 0
        self.dead_node = DeadNode(self)

    def play(self) -> None:
        """All of it."""
        self.prepare()
        first = self.first_start()
        self.power_cut(first)
        second = self.restart(first)
        self.fourth_pod(second)
        self.late_deletes(first, second)
        self.goodbye(list(second))
        self.dead_node.play()

    def close(self) -> None:
        """End what runs, whatever happened."""
        self.dead_node.close()
        self.server.stop()

    def prepare(self) -> None:
        """A server, a pool of three addresses, the plugin."""
        title("A server starts, in a temporary directory")
        shell(self.server.command)
        told(f"ready after {self.server.start():.1f} s")
        title("A pool of three addresses")
        span = ("--range-start", FIRST, "--range-end", LAST)
        self.ipamctl("pool", "create", POOL, "--subnet", SUBNET, *span, "--cooldown", "0", show=False)
        self.ipamctl("pool", "list")
        title("The CNI plugin is installed")
        self.plugins.mkdir()
        self.ipamctl("cni", "install", "--bin-dir", str(self.plugins))

    def first_start(self) -> dict[Sandbox, str]:
        """Three pods start."""
        title(f"Three pods start ({'through the bridge plugin' if self.no_bridge is None else 'plugin alone'})")
        pods = {sandbox: self.add(sandbox) for sandbox in map(self.sandbox, PODS)}
        expect(len(set(pods.values())) == len(PODS), "each pod has an address of its own")
        self.ping(pods)
        return pods

    def power_cut(self, pods: dict[Sandbox, str]) -> None:
        """The node goes down: the server is killed, the pods are gone, nobody sent a DEL."""
        title("The node goes down: kill -9, and nobody sends a DEL")
        told(f"server process {self.server.kill()} is dead")
        for sandbox in pods:
            if sandbox.netns:
                self.namespaces.delete(sandbox.netns)
        told("the pods are gone" + (", with their network namespaces" if self.no_bridge is None else ""))

    def restart(self, before: dict[Sandbox, str]) -> dict[Sandbox, str]:
        """The pods come back under their names, in new containers."""
        title("It comes back: new containers for the same pods, and the pool is still full")
        shell(self.server.command)
        told(f"ready after {self.server.start():.1f} s")
        pods = {sandbox: self.add(sandbox) for sandbox in map(self.sandbox, PODS)}
        expect(list(pods.values()) == list(before.values()), "every pod has the address it had before")
        self.ping(pods)
        return pods

    def fourth_pod(self, pods: dict[Sandbox, str]) -> None:
        """One pod too many."""
        title("A fourth pod finds the pool full")
        answer = self.call("ADD", self.sandbox(FOURTH))
        told(f"error {answer.said.get('code')}: {answer.said.get('msg')}")
        expect(answer.said.get("code") == 110, "it is refused with code 110 and told why")
        self.ipamctl("reservation", "list")
        expect(self.held() == sorted(pods.values()), "the three pods hold what they held")

    def late_deletes(self, old: dict[Sandbox, str], pods: dict[Sandbox, str]) -> None:
        """The DELs of the containers that died come at last."""
        title("The late DELs of the dead containers arrive")
        for sandbox in old:
            answer = self.call("DEL", sandbox)
            told(f"DEL {sandbox.pod} {short(sandbox)}: {'ok' if answer.status == 0 else answer.said}")
            expect(answer.status == 0, "a DEL of what is gone succeeds", quiet=True)
        expect(self.held() == sorted(pods.values()), "nothing was freed: they belong to the new containers now")

    def goodbye(self, pods: list[Sandbox]) -> None:
        """The pods end properly."""
        title("The pods end: DEL of the new containers")
        for sandbox in pods:
            answer = self.call("DEL", sandbox)
            told(f"DEL {sandbox.pod} {short(sandbox)}: {'ok' if answer.status == 0 else answer.said}")
            expect(answer.status == 0, "a DEL succeeds", quiet=True)
        expect(self.held() == [], "nobody holds an address")
        usage = self.asked("pool", "usage", POOL)["ipv4"]
        expect(usage["free"] == usage["total"] == len(PODS), "all three addresses are free")

    def sandbox(self, pod: str) -> Sandbox:
        """A new container of a pod, with a namespace where the machine allows it."""
        self.lives += 1
        netns = self.namespaces.add(f"{pod.rpartition('/')[2]}-{self.lives}") if self.no_bridge is None else ""
        return Sandbox(pod, secrets.token_hex(32), netns)

    def call(self, verb: str, sandbox: Sandbox, address: str | None = None) -> Answer:
        """One CNI call, through bridge or to the plugin alone, which asks at a node socket: by default the server's."""
        runtime = self.runtime if address is None else replace(self.runtime, address=address)
        conf: dict[str, Any] = {
            "cniVersion": "1.0.0",
            "name": "storage-net",
            "ipam": {"type": "ipamd", "pool": POOL},
        }
        bridge = {"type": "bridge", "bridge": self.bridge, "isGateway": False}
        if self.no_bridge is None:
            self.namespaces.devices.add(self.bridge)
            return runtime.call(verb, conf | bridge, sandbox)
        return runtime.call(
            verb, conf | {"type": "ipamd"}, Sandbox(sandbox.pod, sandbox.container_id, "/proc/self/ns/net")
        )

    @property
    def bridge(self) -> str:
        """The bridge device of this run."""
        return f"ipdemo{os.getpid() % 10**7}"

    def add(self, sandbox: Sandbox, address: str | None = None) -> str:
        """A pod starts; its address."""
        began = time.monotonic()
        answer = self.call("ADD", sandbox, address)
        if answer.status != 0:
            fail(f"ADD {sandbox.pod}: {answer.said}")
        (given,) = answer.addresses
        told(f"ADD {sandbox.pod} {short(sandbox)} -> {given}  ({(time.monotonic() - began) * 1000:.0f} ms)")
        return given

    def ping(self, pods: dict[Sandbox, str]) -> None:
        """The first pod pings the last one."""
        (first, *_), (*_, last) = pods, pods
        if self.no_bridge is None and shutil.which("ping"):
            reached = inside(first.netns, "ping", "-c", "1", "-W", "5", pods[last]).returncode == 0
            expect(reached, f"{first.pod} can ping {last.pod}")

    def ipamctl(self, *arguments: str, show: bool = True) -> None:
        """Run ipamctl and show what it prints, at least what it says on stderr."""
        shell(["ipamctl", *arguments])
        ended = subprocess.run([*self._ipamctl, *arguments], check=False, text=True, capture_output=True)
        for line in (ended.stdout * show + ended.stderr).splitlines():
            told(line)
        expect(ended.returncode == 0, "ipamctl ends well", quiet=True)

    def asked(self, *arguments: str) -> Any:
        """What ipamctl answers as JSON."""
        ended = subprocess.run([*self._ipamctl, "-o", "json", *arguments], check=True, text=True, capture_output=True)
        return json.loads(ended.stdout)

    def held(self) -> list[str]:
        """All addresses that are reserved now."""
        items = self.asked("reservation", "list")["items"]
        texts = [text for item in items for attachment in item["attachments"] for text in attachment["addresses"]]
        return sorted(text.partition("/")[0] for text in texts)

    @property
    def _ipamctl(self) -> list[str]:
        return [str(BIN / "ipamctl"), "--server", f"unix:{self.server.socket}"]


def short(sandbox: Sandbox) -> str:
    return f"(container {sandbox.container_id[:8]})"


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    began, no_bridge = time.monotonic(), why_no_bridge()
    print("ipamd: pods keep their addresses through a crash, and a dead node gives them back.")
    print(
        "Network: "
        + ("real, bridge plugin in network namespaces" if no_bridge is None else f"the plugin alone, as {no_bridge}")
    )
    namespaces = Namespaces(f"ipamd-demo-{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="ipamd-demo-") as folder:
        story = Story(Path(folder), namespaces, no_bridge)
        try:
            story.play()
        finally:
            story.close()
            namespaces.close()
    print(f"\nDone in {time.monotonic() - began:.0f} s; nothing is left running.")


if __name__ == "__main__":
    main()
