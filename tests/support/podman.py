"""Owns Debian's podman on a Host, with CNI for its networks, and a root file system of busybox for its containers.

The plugins ask at the socket's usual place: what podman has run when a container ends does not get its environment.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.support.host import Host

NETWORK = "e2e-net"

_CONFIG = """
[containers]
apparmor_profile = ""
[network]
network_backend = "cni"
cni_plugin_dirs = ["{disk}/bin"]
network_config_dir = "{disk}/net.d"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
"""


class Podman:
    """podman of a host."""

    def __init__(self, host: Host, pool: str) -> None:
        self._host, self._disk = host, host.disk
        (self._disk / "net.d").mkdir()
        (self._disk / "containers.conf").write_text(_CONFIG.format(disk=self._disk))
        bridge = {"type": "bridge", "bridge": "cni0", "ipam": {"type": "ipamd", "pool": pool}}
        conf = {"cniVersion": "1.0.0", "name": NETWORK, "plugins": [bridge]}
        (self._disk / "net.d" / "e2e.conflist").write_text(json.dumps(conf))
        bin_dir = self._disk / "rootfs" / "bin"
        bin_dir.mkdir(parents=True)
        shutil.copy(shutil.which("busybox") or "", bin_dir / "busybox")

    def run(self, name: str) -> str:
        """Start a container; its id."""
        sleeping = ("--rootfs", self._disk / "rootfs", "/bin/busybox", "sleep", "1000000")
        return self.podman("run", "--detach", "--name", name, "--network", NETWORK, *sleeping)

    def address(self, name: str) -> str:
        """Its address, as podman knows it."""
        return self.podman(
            "inspect", name, "--format", f'{{{{(index .NetworkSettings.Networks "{NETWORK}").IPAddress}}}}'
        )

    def podman(self, *arguments: str | Path) -> str:
        """Run podman; what it printed. Raises AssertionError when it fails."""
        own = ("--root", self._disk / "containers", "--runroot", "/run/podman", "--runtime", "runc")
        environment = {"CONTAINERS_CONF": str(self._disk / "containers.conf")}
        done = self._host.run("podman", *own, *arguments, environment=environment)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()
