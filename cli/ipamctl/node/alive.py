"""Owns reading who lives on a node, from what a runtime or a cluster lists: containers by id, pods by name.

Known are the outputs of `crictl pods -o json`, `crictl ps -o json`, `kubectl get pods -o json` and
`nerdctl ps --no-trunc --format json` (or podman's), and plain text with a container id or NAMESPACE/NAME a line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_LEAST_ID = 12
"""Shorter ids are no container's; runtimes print twelve digits at least."""

_READY = {"SANDBOX_READY", "CONTAINER_RUNNING", "running"}


@dataclass(frozen=True)
class Alive:
    """Who lives: container ids (whole, or how they begin) and pods."""

    containers: frozenset[str]
    pods: frozenset[str]

    def has(self, attachment: Mapping[str, Any]) -> bool:
        """Whether an attachment of the node is one of them.

        nerdctl puts its namespace before the id (`default-ID`), and ipamd its cluster's name before the pod
        (`CLUSTER:NAMESPACE/NAME`), which no list of that cluster knows.
        """
        container, pod = attachment.get("container_id") or "", attachment.get("pod_ref") or ""
        own = {container, container.rpartition("-")[2]}
        is_listed = any(id_.startswith(one) for id_ in own for one in self.containers if id_)
        return is_listed or not self.pods.isdisjoint({pod, pod.rpartition(":")[2]})


def read_alive(text: str) -> Alive:
    """Read a list. Raises ValueError, with a sentence, for one that is not understood."""
    items = list(_items(text))
    containers = {one for item in items if (one := _container(item)) is not None}
    pods = {one for item in items if (one := _pod(item)) is not None}
    short = sorted(one for one in containers if len(one) < _LEAST_ID)
    if short:
        raise ValueError(f"{short[0]!r} is neither a container id nor NAMESPACE/NAME")
    return Alive(frozenset(containers), frozenset(pods))


def _items(text: str) -> Iterable[Any]:
    """The objects or lines of a list."""
    if not text.lstrip().startswith(("{", "[")):
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        whole = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]  # an object a line, as nerdctl prints
    if isinstance(whole, dict) and isinstance(whole.get("items"), list):
        return list(whole["items"])
    if isinstance(whole, dict) and isinstance(whole.get("containers"), list):
        return list(whole["containers"])
    return whole if isinstance(whole, list) else [whole]


def _container(item: Any) -> str | None:
    """The id of a container that runs."""
    if isinstance(item, str):
        return None if "/" in item else item
    if not isinstance(item, dict):
        raise ValueError("it holds something that is neither an object nor a line")  # noqa: TRY004 - a bad list
    id_ = item.get("podSandboxId") or item.get("id") or item.get("ID") or item.get("Id")  # a pod's is its sandbox's
    if not isinstance(id_, str):
        return None
    state = item.get("state") or item.get("State") or item.get("Status") or ""
    return id_ if not isinstance(state, str) or state in _READY or state.startswith("Up") else None


def _pod(item: Any) -> str | None:
    """The name of a pod that runs, as Kubernetes lists it."""
    if isinstance(item, str):
        return item if "/" in item else None
    meta = item.get("metadata")
    if not isinstance(meta, dict) or item.get("id"):
        return None
    status = item.get("status")
    phase = status.get("phase") if isinstance(status, dict) else None
    return f"{meta.get('namespace', 'default')}/{meta.get('name')}" if phase in ("Running", "Pending") else None
