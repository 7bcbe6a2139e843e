"""docker-compose.yml and the Dockerfile say what the program understands. No engine is needed to see that."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from ipamctl.cni.static import READY
from ipamctl.main import cli
from ipamd.settings import Config, Host, load

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("n1", "n2", "n3")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return found


def config_of(service: dict[str, Any]) -> Config:
    return load({}, service["environment"], Host(service["hostname"], is_container=True))


def test_each_server_has_settings_that_hold(compose: dict[str, Any]) -> None:
    configs = [config_of(compose["services"][name]) for name in NAMES]
    for name, config in zip(NAMES, configs, strict=True):
        assert (config.member_name, config.node_name) == (name, name)
        assert (str(config.advertise_raft), config.advertise_url) == (f"{name}:7481", f"https://{name}:7480")
        assert config.has_tls
        assert not config.insecure
        assert (str(config.tls_cert), str(config.tls_key)) == (f"/tls/{name}.crt", f"/tls/{name}.key")
    assert len({config.peer for config in configs}) == 1
    assert [peer.name for peer in configs[0].peer or ()] == list(NAMES)


def test_servers_share_nothing_but_certificates(compose: dict[str, Any]) -> None:
    services = [compose["services"][name] for name in NAMES]
    volumes = [volume.split(":")[0] for service in services for volume in service["volumes"]]
    assert sorted(volumes) == ["n1", "n2", "n3", "tls", "tls", "tls"]
    assert set(volumes) == set(compose["volumes"])
    ports = [port for service in services for port in service["ports"]]
    assert len({port.rsplit(":", 1)[0] for port in ports}) == 3
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_certificates_are_those_that_the_servers_read(compose: dict[str, Any], tmp_path: Path) -> None:
    script = compose["services"]["certificates"]["command"][0].replace("$$", "$").replace("/tls", str(tmp_path / "tls"))
    for _ in range(2):
        subprocess.run(["sh", "-euc", script], check=True, env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"})
    wanted = {"ca.crt", "ca.key", *(f"{name}.{end}" for name in NAMES for end in ("crt", "key"))}
    assert {file.name for file in (tmp_path / "tls").iterdir()} == wanted


def test_the_image_has_the_static_plugin_where_it_is_looked_for() -> None:
    docker = (ROOT / "Dockerfile").read_text()
    home = re.search(r"python -m venv (\S+)", docker)
    assert home is not None
    made = READY.relative_to(sys.prefix)
    assert f'mv /tmp/ipamd "{home[1]}/{made}/cni-static-$(uname -m)"' in docker
    assert f"mkdir -p {home[1]}/{made} " in docker


def test_the_health_check_is_a_command_of_ours(compose: dict[str, Any]) -> None:
    word, program, *arguments = compose["services"]["n1"]["healthcheck"]["test"]
    assert (word, program) == ("CMD", "ipamctl")
    assert CliRunner().invoke(cli, [*arguments, "--help"]).exit_code == 0


def test_the_image_copies_what_the_wheel_is_made_of() -> None:
    docker = (ROOT / "Dockerfile").read_text()
    copied = set(" ".join(re.findall(r"^COPY (?!--from)(.*) \S+$", docker, re.MULTILINE)).split())
    assert {"pyproject.toml", "README.md", "LICENSE", "ipamd", "cli", "contrib/cni-static", "migrations"} == copied
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied <= allowed
    assert all((ROOT / name).exists() for name in copied)
    assert re.search(r"^USER ipamd$", docker, re.MULTILINE)
