"""Owns Debian's containerd on a Host: its settings, a sandbox image made of busybox, and its node's network.

Nothing of the machine's own containerd is touched: root, state, socket, plugins and network configuration are the
host's, and so is the cgroup that its containers run under.
"""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import signal
import tarfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from tests.support.cri import Cri
from tests.support.host import Host, Started, wait_until

IMAGE = "localhost/ipamd-sandbox:1"
NETWORK = "e2e-net"
READY_S = 120.0

_CONFIG = """
version = 2
root = "{disk}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "{disk}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{disk}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{disk}/bin"
    conf_dir = "{disk}/net.d"
"""


class Containerd:
    """containerd of a host, which keeps what it knows on the host's disk, and runs the plugins in its `bin`."""

    def __init__(self, host: Host, pool: str) -> None:
        self.host, self.disk, self.pool = host, host.disk, pool
        self.cgroup = f"/ipamd-e2e-{os.getpid()}"
        self.log_file = self.disk / "containerd.log"
        self.conf = {
            "cniVersion": "1.0.0",
            "name": NETWORK,
            "plugins": [{"type": "bridge", "bridge": "cni0", "ipam": {"type": "ipamd", "pool": pool}}],
        }
        self._started: Started | None = None
        self._install()

    def start(self, address: str) -> Cri:
        """Start it, its plugins asking at `address`; a client, once it is ready. Raises AssertionError."""
        with self.log_file.open("ab") as log:
            config = ("--config", self.disk / "containerd.toml")
            self._started = self.host.spawn("containerd", *config, log=log, environment={"IPAMD_CNI_ADDRESS": address})
        cri = Cri(self.disk / "containerd.sock", self.cgroup)
        wait_until(cri.is_ready, READY_S, f"containerd is not ready: {self.log_file.read_text()[-2000:]}")
        if IMAGE not in self._ctr("images", "list", "--quiet").split():
            self._ctr("images", "import", str(self.disk / "image.tar"))
        wait_until(lambda: b"localhost" in cri_images(cri), READY_S, "containerd does not know the sandbox image")
        return cri

    def crash(self) -> None:
        """kill -9; its containers live on."""
        assert self._started is not None
        self._started.send(signal.SIGKILL)
        self._started.wait()

    def close(self) -> None:
        """Take away what is left outside the host: empty control groups."""
        for controller in Path("/sys/fs/cgroup").iterdir():
            for folder in sorted((controller / self.cgroup[1:]).rglob("*"), reverse=True):
                with suppress(OSError):
                    folder.rmdir()
            with suppress(OSError):
                (controller / self.cgroup[1:]).rmdir()

    def _install(self) -> None:
        for folder in ("net.d", "opt"):
            (self.disk / folder).mkdir()
        (self.disk / "net.d" / "10-e2e.conflist").write_text(json.dumps(self.conf))
        (self.disk / "containerd.toml").write_text(_CONFIG.format(disk=self.disk, image=IMAGE))
        write_image(self.disk / "image.tar")

    def _ctr(self, *arguments: str) -> str:
        done = self.host.run("ctr", "--address", self.disk / "containerd.sock", "--namespace", "k8s.io", *arguments)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()


def cri_images(cri: Cri) -> bytes:
    """What ListImages of the image service answers, as it comes."""
    answer: bytes = cri.channel.unary_unary("/runtime.v1.ImageService/ListImages")(b"", timeout=60)
    return answer


def write_image(target: Path) -> None:
    """A sandbox image: a statically linked busybox that sleeps, in the format of `docker save`."""
    busybox = Path(shutil.which("busybox") or "").read_bytes()
    layer = _tar({"bin/busybox": busybox}, mode=0o755)
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()], "os": "linux",
        "config": {"Entrypoint": ["/bin/busybox", "sleep", "1000000"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{sha256(layer).hexdigest()}"]},
    }  # fmt: skip
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    target.write_bytes(
        _tar(
            {
                "layer.tar": layer,
                "config.json": json.dumps(config).encode(),
                "manifest.json": json.dumps(manifest).encode(),
            }
        )
    )


def _tar(files: dict[str, bytes], mode: int = 0o644) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    return whole.getvalue()
