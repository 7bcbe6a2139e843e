"""Owns images for Debian's podman: bases made by debootstrap, since nothing is fetched from a registry, and builds.

What runs of them runs on a Host, in a network of its own; what is built uses this machine's network, for apt and pip.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.host import Host

BUILD_S = 900

_CONFIG = """
[containers]
apparmor_profile = ""
default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"]
[network]
network_backend = "cni"
cni_plugin_dirs = ["{plugins}"]
network_config_dir = "{folder}/net.d"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
_PIP = "[global]\ncert = /etc/host-ca.crt\n"

_PROMETHEUS = """
FROM {base}
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends prometheus >/dev/null
RUN install -d -o nobody /prometheus
USER nobody
ENTRYPOINT ["/usr/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
"""
"""Debian's Prometheus, where the project's own image has it."""


class Images:
    """podman's images in a folder of their own, and a program `podman` for those who run it by name."""

    def __init__(self, plugins: Path) -> None:
        self._folder = folder = Path(tempfile.mkdtemp(prefix="ipamd-images-"))
        (folder / "net.d").mkdir()
        self.config = folder / "containers.conf"
        self.config.write_text(_CONFIG.format(plugins=plugins, folder=folder))
        self.program = folder / "podman"
        self.program.write_text(
            f'#!/bin/sh\nexec podman --root {folder}/root --runroot {folder}/run "$@"\n', encoding="utf-8"
        )
        self.program.chmod(0o755)

    @property
    def environment(self) -> Mapping[str, str]:
        """What podman has to know. Its health checks are asked for, as no systemd is there to do it."""
        return {"CONTAINERS_CONF": str(self.config), "DISABLE_HC_SYSTEMD": "true", "BUILDAH_FORMAT": "docker"}

    def make_base(self, tag: str) -> None:
        """A Debian 12 with nothing but what every Debian has, under the name of the image that it stands in for."""
        root = self._folder / "base"
        run("debootstrap", "--variant=minbase", "bookworm", root)
        for superfluous in ("var/cache/apt/archives", "var/lib/apt/lists"):
            shutil.rmtree(root / superfluous)
            (root / superfluous / "partial").mkdir(parents=True)
        archive = self._folder / "base.tar"
        run("tar", "-C", root, "-cf", archive, ".")
        self.podman("import", archive, tag)
        archive.unlink()
        shutil.rmtree(root)

    def close(self) -> None:
        """Let go of all of it: mounts first, which a container that was cut short leaves behind."""
        mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for mount in reversed([mount for mount in mounts if Path(mount).is_relative_to(self._folder)]):
            run("umount", "--lazy", mount)
        shutil.rmtree(self._folder)

    def build(self, context: Path, tag: str, *arguments: str | Path) -> None:
        """Build a Dockerfile, the real one or another."""
        (self._folder / "pip.conf").write_text(_PIP)
        mounts = ("-v", f"{_AUTHORITIES}:/etc/host-ca.crt:ro", "-v", f"{self._folder}/pip.conf:/etc/pip.conf:ro")
        self.podman("build", "--network", "host", "--pull=never", *mounts, "--tag", tag, *arguments, context)

    def make_prometheus(self, base: str, tag: str) -> None:
        """Debian's Prometheus under the name of the image that it stands in for."""
        folder = self._folder / "prometheus"
        folder.mkdir()
        (folder / "Dockerfile").write_text(_PROMETHEUS.format(base=base))
        self.build(folder, tag)

    def podman(self, *arguments: str | Path) -> str:
        """Run podman on this machine; what it printed. Raises AssertionError when it fails."""
        return run(self.program, *arguments, environment=self.environment)

    def podman_on(self, host: Host, *arguments: str | Path) -> str:
        """Run podman on a host."""
        done = host.run(self.program, *arguments, environment=self.environment)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()


def run(*command: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program to its end; what it printed. Raises AssertionError when it fails."""
    done = subprocess.run(
        command, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=BUILD_S,
    )  # fmt: skip
    assert done.returncode == 0, f"{command[0]}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout.strip()
