"""The second half of the story: a node dies with its pods, the pool is full, and whoever knows of its death says so."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from demo.agent import Agent
from demo.cni import Sandbox
from demo.telling import expect, shell, title, told

if TYPE_CHECKING:
    from demo.story import Story

WORKER = "worker"
LOST_S = 3
STAYS, GOES, LATER = "default/web-0", ("default/web-1", "default/web-2"), "default/web-3"
PATIENCE_S = 120.0


class DeadNode:
    """What happens, in order, beside the server's own node."""

    def __init__(self, story: Story) -> None:
        self.story = story
        self.agent = Agent(story.folder / WORKER, WORKER, story.server.url)
        self.address = f"unix:{self.agent.socket}"

    def play(self) -> None:
        """All of it."""
        self.second_node()
        here, there = self.fill()
        self.death(there)
        self.refusal()
        self.release(here)

    def second_node(self) -> None:
        """A node without a server."""
        title("A second node: it runs no server, but an agent")
        token = self.story.asked("token", "create", WORKER, "--role", "node", "--node", WORKER)["secret"]
        shell(self.agent.command)
        self.agent.start(token)
        self.story.ipamctl("settings", "set", f"node_lost_s={LOST_S}", show=False)
        told(f"a node that is silent for {LOST_S} s counts as lost (else 300)")

    def fill(self) -> tuple[Sandbox, list[Sandbox]]:
        """Pods on both nodes, until the pool is full."""
        title("Two pods start there, and one on the server's own node")
        there = [self.story.sandbox(pod) for pod in GOES]
        for sandbox in there:
            self.story.add(sandbox, self.address)
        here = self.story.sandbox(STAYS)
        self.story.add(here)
        expect(len(self.story.held()) == len(there) + 1, "the pool is full")
        return here, there

    def death(self, pods: list[Sandbox]) -> None:
        """The node is gone with all that ran there."""
        title("That node dies: kill -9, its pods are gone, and nobody sends a DEL")
        self.agent.kill()
        for sandbox in pods:
            if sandbox.netns:
                self.story.namespaces.delete(sandbox.netns)
        until = time.monotonic() + PATIENCE_S
        while self.story.asked("node", "show", WORKER)["state"] != "lost":
            expect(time.monotonic() < until, "a silent node is lost", quiet=True)
            time.sleep(0.2)
        self.story.ipamctl("node", "list")
        lost = [node["name"] for node in self.story.asked("node", "list")["items"] if node["state"] == "lost"]
        expect(lost == [WORKER], "no other node counts as lost", quiet=True)

    def refusal(self) -> None:
        """The next pod is told who holds what."""
        title("A pod finds the pool full, and is told why")
        answer = self.story.call("ADD", self.story.sandbox(LATER))
        msg = str(answer.said.get("msg"))
        told(f"error {answer.said.get('code')}: {msg}")
        expect(answer.said.get("code") == 110, "it is refused with code 110", quiet=True)
        expect(f"ipamctl node release {WORKER}" in msg, "the refusal names the lost node, and the command that helps")
        expect(len(self.story.held()) == len(GOES) + 1, "nothing was freed on a suspicion")

    def release(self, here: Sandbox) -> None:
        """Somebody who knows that the node is dead says so."""
        title("Somebody has looked: the machine is off")
        self.story.ipamctl("node", "release", WORKER, "--yes")
        later = self.story.sandbox(LATER)
        self.story.add(later)
        expect(len(self.story.held()) == 2, "the ADD works")
        self.story.goodbye([here, later])

    def close(self) -> None:
        """End what runs."""
        self.agent.kill()
