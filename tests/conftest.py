"""Owns what all tests share: the markers for tests that need more than a laptop gives.

A test that needs root or the CNI plugins is skipped with its reason on a machine without them. Under CI=true it fails
instead: there a skip would hide that the machine is not what it should be.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support import canary

# How long an example takes, or takes to be made up, says nothing on a machine that is shared.
settings.register_profile("ipamd", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ipamd")

CNI_BIN = Path(os.environ.get("CNI_BIN", "/usr/lib/cni"))
"""Where Debian's containernetworking-plugins puts the plugins."""

Reason = str | None


@functools.cache
def without_namespaces() -> Reason:
    """Why network namespaces cannot be made here; None: they can."""
    if os.geteuid() != 0:
        return "needs root"
    for tool, package in (("ip", "iproute2"), ("ping", "iputils-ping")):
        if shutil.which(tool) is None:
            return f"needs {tool} (Debian: {package})"
    name = f"ipamd-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        return f"needs network namespaces: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", name], check=True)
    return None


@functools.cache
def without_disks() -> Reason:
    """Why small file systems cannot be made here; None: they can."""
    if os.geteuid() != 0:
        return "needs root"
    if shutil.which("mkfs.ext4") is None:
        return "needs mkfs.ext4 (Debian: e2fsprogs)"
    asked = subprocess.run(["losetup", "--find"], capture_output=True, text=True, check=False)
    return None if asked.returncode == 0 else f"needs loop devices: {asked.stderr.strip()}"


@functools.cache
def without_mounts() -> Reason:
    """Why a host cannot be made here out of layers over this one; None: it can."""
    if os.geteuid() != 0:
        return "needs root"
    layer = "mount -t tmpfs tmpfs /mnt && mkdir /mnt/up /mnt/work && mount -t overlay overlay -o {} /etc"
    command = layer.format("lowerdir=/etc,upperdir=/mnt/up,workdir=/mnt/work")
    made = subprocess.run(
        ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--mount-proc", "sh", "-c", command],
        capture_output=True,
        text=True,
        check=False,
    )
    return None if made.returncode == 0 else f"needs overlay mounts: {made.stderr.strip()}"


@functools.cache
def without_strace() -> Reason:
    """Why system calls of a running process cannot be made to fail here; None: they can."""
    if shutil.which("strace") is None:
        return "needs strace"
    tried = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"needs strace: {tried.stderr.strip()}"


@functools.cache
def without_gcc() -> Reason:
    """Why a library in C cannot be compiled here; None: it can."""
    if shutil.which("gcc") is None:
        return "needs gcc"
    command = ["gcc", "-shared", "-fPIC", "-xc", "-o", "/dev/null", "-"]
    tried = subprocess.run(command, input="#include <time.h>\n", capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"needs the headers of C (Debian: libc6-dev): {tried.stderr.strip()}"


@functools.cache
def without_openssl() -> Reason:
    """Why certificates cannot be made by its command here; None: they can."""
    return None if shutil.which("openssl") else "needs openssl"


@functools.cache
def without_plugins() -> Reason:
    """Why the real CNI plugins cannot be run here; None: they can."""
    missing = [name for name in ("bridge", "host-local", "macvlan", "ptp") if not os.access(CNI_BIN / name, os.X_OK)]
    return f"needs the CNI plugins {', '.join(missing)} in {CNI_BIN}" if missing else None


@functools.cache
def without_hosts() -> Reason:
    """Why a host that can lose its power (tests.support.host) cannot be made here, or has no container; None: it can."""
    packages = {"busybox": "busybox-static", "nsenter": "util-linux", "runc": "runc", "unshare": "util-linux"}
    for tool, package in packages.items():
        if shutil.which(tool) is None:
            return f"needs {tool} (Debian: {package})"
    if b"/ld-" in Path(shutil.which("busybox") or "").read_bytes():
        return "needs a statically linked busybox (Debian: busybox-static)"
    own = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "true"]
    made = subprocess.run(own, capture_output=True, text=True, check=False)
    return None if made.returncode == 0 else f"needs namespaces: {made.stderr.strip()}"


def without_containerd() -> Reason:
    """Why containerd cannot be run here; None: it can."""
    return without_hosts() if shutil.which("containerd") and shutil.which("ctr") else "needs containerd"


def without_podman() -> Reason:
    """Why podman cannot be run here; None: it can."""
    return without_hosts() if shutil.which("podman") else "needs podman"


@functools.cache
def without_compose() -> Reason:
    """Why docker-compose.yml cannot be run here with images of our own; None: it can."""
    if shutil.which("debootstrap") is None:
        return "needs debootstrap"
    if not (CNI_BIN / "dnsname").exists():
        return f"needs dnsname in {CNI_BIN} (Debian: golang-github-containernetworking-plugin-dnsname)"
    if not Path(sys.executable).with_name("podman-compose").exists():
        return "needs podman-compose beside this Python"
    return without_podman()


def without_promtool() -> Reason:
    """Why rules of Prometheus cannot be checked here; None: they can."""
    return None if shutil.which("promtool") else "needs promtool (Debian: prometheus)"


def without_chromium() -> Reason:
    """Why no page can be looked at here; None: it can."""
    return None if shutil.which("chromium") else "needs chromium"


NEEDS: dict[str, tuple[str, Callable[[], Reason]]] = {
    "needs_root": ("needs root and network namespaces", without_namespaces),
    "needs_disks": ("needs root and loop devices", without_disks),
    "needs_mounts": ("needs root, namespaces and overlay mounts", without_mounts),
    "needs_strace": ("needs strace", without_strace),
    "needs_gcc": ("needs gcc and the headers of C", without_gcc),
    "needs_openssl": ("needs openssl", without_openssl),
    "needs_containerd": ("needs root and containerd", without_containerd),
    "needs_chromium": ("needs chromium", without_chromium),
    "needs_compose": ("needs root, podman, podman-compose, dnsname and debootstrap", without_compose),
    "needs_podman": ("needs root and podman", without_podman),
    "needs_promtool": ("needs promtool", without_promtool),
    "needs_plugins": ("needs the reference CNI plugins", without_plugins),
}


def pytest_configure(config: pytest.Config) -> None:
    for name, (text, _) in NEEDS.items():
        config.addinivalue_line("markers", f"{name}: {text}; skipped without, a failure under CI=true")
    canary.begin()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What looks at all that the other tests left comes last."""
    items.sort(key=lambda item: "canary" in item.path.parts)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name, (_, reason_of) in NEEDS.items():
        reason = reason_of() if item.get_closest_marker(name) else None
        if reason is not None and os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        if reason is not None:
            pytest.skip(reason)
