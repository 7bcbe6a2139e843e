"""What is read of lists of runtimes: whose ids they give, and what in them is of no use."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ipamctl.node.alive import read_alive

SANDBOX, CONTAINER = "0123456789abcdef" * 4, "fedcba9876543210" * 4


def attachment(container: str = SANDBOX, pod: str = "d/a") -> dict[str, Any]:
    return {"container_id": container, "pod_ref": pod}


def test_a_container_of_a_pod_tells_of_the_pods_sandbox() -> None:
    """`crictl ps -o json`: CNI knows the sandbox alone."""
    running = {"id": CONTAINER, "podSandboxId": SANDBOX, "metadata": {"name": "web"}, "state": "CONTAINER_RUNNING"}
    ended = {**running, "state": "CONTAINER_EXITED"}
    assert read_alive(json.dumps({"containers": [running]})).has(attachment())
    assert not read_alive(json.dumps({"containers": [ended]})).has(attachment())


def test_a_pod_is_known_by_the_name_that_its_own_cluster_has_for_it() -> None:
    pods = {"items": [{"metadata": {"namespace": "d", "name": "a"}, "status": {"phase": "Running"}}]}
    for text in (json.dumps(pods), "d/a\n"):
        assert read_alive(text).has(attachment(CONTAINER, "k8s:d/a"))
        assert not read_alive(text).has(attachment(CONTAINER, "k8s:d/b"))
    assert not read_alive("").has(attachment(CONTAINER, ""))


@pytest.mark.parametrize("status", ["Running", ["Running"], 1, None, {}, {"phase": {}}])
def test_a_pod_that_says_nothing_of_its_state_is_not_alive(status: Any) -> None:
    pods = {"items": [{"metadata": {"namespace": "d", "name": "a"}, "status": status}]}
    assert not read_alive(json.dumps(pods)).has(attachment(CONTAINER))
