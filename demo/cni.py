"""Owns how a container runtime calls a CNI plugin, and the network namespaces it makes for pods."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CNI_BIN = Path(os.environ.get("CNI_BIN", "/usr/lib/cni"))
"""Where Debian's containernetworking-plugins puts the plugins."""

NETNS = Path("/var/run/netns")


@dataclass(frozen=True)
class Answer:
    """What a plugin said: its exit status and the JSON on its stdout (nothing: an empty object)."""

    status: int
    said: dict[str, Any]

    @property
    def addresses(self) -> list[str]:
        """The addresses of a result, without prefix length."""
        return [entry["address"].partition("/")[0] for entry in self.said.get("ips", [])]


@dataclass(frozen=True)
class Sandbox:
    """One life of a pod: a container id, and a network namespace if there is one."""

    pod: str
    container_id: str
    netns: str

    @property
    def args(self) -> str:
        """CNI_ARGS as the kubelet's runtime sends it."""
        namespace, _, name = self.pod.partition("/")
        return f"IgnoreUnknown=1;K8S_POD_NAMESPACE={namespace};K8S_POD_NAME={name}"


@dataclass(frozen=True)
class Runtime:
    """Calls the plugins of a folder list (CNI_PATH), with the address of ipamd's node socket in the environment."""

    path: tuple[Path, ...]
    address: str

    def call(self, verb: str, conf: dict[str, Any], sandbox: Sandbox, *, ifname: str = "eth0") -> Answer:
        """Run the plugin that the configuration names."""
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "CNI_COMMAND": verb,
            "CNI_CONTAINERID": sandbox.container_id,
            "CNI_NETNS": sandbox.netns,
            "CNI_IFNAME": ifname,
            "CNI_ARGS": sandbox.args,
            "CNI_PATH": ":".join(str(folder) for folder in self.path),
            "IPAMD_CNI_ADDRESS": self.address,
            "IPAMD_CNI_CONF": os.devnull,
        }
        plugin = next(folder / conf["type"] for folder in self.path if (folder / conf["type"]).exists())
        ended = subprocess.run(
            [plugin], env=environment, input=json.dumps(conf).encode(), capture_output=True, check=False, timeout=60
        )
        return Answer(ended.returncode, json.loads(ended.stdout) if ended.stdout.strip() else {})


@dataclass
class Namespaces:
    """Network namespaces and devices of this host that are deleted at the end, whatever happened."""

    prefix: str
    made: set[str] = field(default_factory=set)
    devices: set[str] = field(default_factory=set)

    def add(self, name: str) -> str:
        """Make a namespace; returns its path."""
        full = f"{self.prefix}-{name}"
        ip("netns", "add", full)
        self.made.add(full)
        return str(NETNS / full)

    def delete(self, netns: str) -> None:
        """Delete a namespace by its path, as a reboot does."""
        name = Path(netns).name
        ip("netns", "delete", name)
        self.made.discard(name)

    def close(self) -> None:
        """Delete all that is left."""
        for name in sorted(self.made):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)
        for device in sorted(self.devices):
            subprocess.run(["ip", "link", "delete", device], check=False, capture_output=True)
        self.made.clear()
        self.devices.clear()


def ip(*arguments: str) -> str:
    """Run iproute2's ip; what it printed. Raises CalledProcessError."""
    return subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True).stdout


def inside(netns: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a namespace."""
    return subprocess.run(
        ["ip", "netns", "exec", Path(netns).name, *command], check=False, capture_output=True, text=True, timeout=30
    )


def why_no_bridge() -> str | None:
    """Why pods cannot get a real network here; None: they can."""
    if os.geteuid() != 0:
        return "it takes root to make network namespaces"
    if not os.access(CNI_BIN / "bridge", os.X_OK):
        return f"there is no bridge plugin in {CNI_BIN} (Debian: containernetworking-plugins)"
    probe = f"ipamd-probe-{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", probe], check=False, capture_output=True).returncode != 0:
        return "this machine does not allow network namespaces"
    ip("netns", "delete", probe)
    return None
