"""docker-compose.yml and the Dockerfile say what the program understands. No engine is needed to see that."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ipamctl.cni.static import READY
from ipamd.settings import Config, Host, load, load_agent

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


def volumes_of(service: dict[str, Any]) -> set[str]:
    return {volume.split(":")[0] for volume in service["volumes"] if not volume.startswith(".")}


def script_of(service: dict[str, Any], **places: Path) -> list[str]:
    """Its script, for a shell of this host where its volumes are those places."""
    text = service["command"][0].replace("$$", "$")
    for name, place in places.items():
        place.mkdir(exist_ok=True)
        text = text.replace(f"/{name}", str(place))
    return ["sh", "-euc", text]


def test_servers_share_nothing_but_certificates(compose: dict[str, Any]) -> None:
    n1, n2, n3 = (volumes_of(compose["services"][name]) for name in NAMES)
    assert (n1 - {"n1-socket"}, n2, n3) == ({"n1", "tls"}, {"n2", "tls"}, {"n3", "tls"})


def test_nobody_but_the_maker_of_certificates_sees_the_authoritys_key(compose: dict[str, Any]) -> None:
    seen = {name for name, service in compose["services"].items() if "authority" in volumes_of(service)}
    assert seen == {"certificates"}


def test_every_volume_is_used_and_is_there(compose: dict[str, Any]) -> None:
    assert set.union(*map(volumes_of, compose["services"].values())) == set(compose["volumes"])


def test_ports_are_those_of_this_host_alone(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert len({port.rsplit(":", 1)[0] for port in ports}) == 4
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_the_agent_has_settings_that_hold(compose: dict[str, Any]) -> None:
    config = load_agent({}, compose["services"]["worker"]["environment"], Host("4f2a", is_container=True))
    assert config.node_name == "worker"
    assert [str(url) for url in config.server] == [f"https://{name}:7480" for name in NAMES]


def test_the_certificates_are_those_that_the_servers_read(compose: dict[str, Any], tmp_path: Path) -> None:
    authority, tls = tmp_path / "authority", tmp_path / "tls"
    script = script_of(compose["services"]["certificates"], authority=authority, tls=tls)
    script[-1] = script[-1].replace("install -o ipamd", "install")
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    for _ in range(2):
        subprocess.run(script, check=True, env={"PATH": path})
    servers = {f"{name}.{end}" for name in NAMES for end in ("crt", "key")}
    assert {file.name for file in authority.iterdir()} == {"ca.crt", "ca.key", *servers}
    assert {file.name for file in tls.iterdir()} == {"ca.crt", *servers}
    assert {file.stat().st_mode & 0o777 for file in tls.glob("n*")} == {0o600}


@pytest.mark.parametrize("name", [*NAMES, "tokens"])
def test_a_start_without_certificates_names_the_command_that_makes_them(
    compose: dict[str, Any], name: str, tmp_path: Path
) -> None:
    service = compose["services"][name]
    environment = {key: str(value).replace("/tls", str(tmp_path)) for key, value in service["environment"].items()}
    ended = subprocess.run(
        script_of(service, tls=tmp_path), capture_output=True, text=True, check=False,
        env={**environment, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
    )  # fmt: skip
    assert ended.returncode == 1
    assert "docker compose run --rm certificates" in ended.stderr
    assert "certificates" in compose["services"]


def test_whatever_needs_certificates_is_started_without_them_being_made(compose: dict[str, Any]) -> None:
    """They are made once, by whoever is asked to: `up` starts no service that makes an authority."""
    assert compose["services"]["certificates"]["profiles"] == ["setup"]
    assert all("profiles" not in service for name, service in compose["services"].items() if name != "certificates")


def test_the_image_has_the_static_plugin_where_it_is_looked_for() -> None:
    docker = (ROOT / "Dockerfile").read_text()
    home = re.search(r"python3 -m venv --without-pip (\S+)", docker)
    assert home is not None
    made = READY.relative_to(sys.prefix)
    assert f'mv /tmp/ipamd "{home[1]}/{made}/cni-static-$(uname -m)"' in docker
    assert f"mkdir -p {home[1]}/{made} " in docker


def test_the_image_copies_what_the_wheel_is_made_of() -> None:
    docker = (ROOT / "Dockerfile").read_text()
    copied = set(" ".join(re.findall(r"^COPY (?!--from)(.*) \S+$", docker, re.MULTILINE)).split())
    docker_files = {f"contrib/docker/{name}" for name in ("build.lock", "requirements.lock", "healthy.py")}
    sources = {"pyproject.toml", "README.md", "LICENSE", "ipamd", "cli", "contrib/cni-static", "migrations"}
    assert copied == sources | docker_files
    allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert all(any(Path(name).is_relative_to(folder) for folder in allowed) for name in copied)
    assert all((ROOT / name).exists() for name in copied)


def test_the_image_runs_as_nobody_in_particular_and_says_how_it_is() -> None:
    docker = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^USER (.*)$", docker, re.MULTILINE) == ["ipamd"]
    assert re.search(r"^HEALTHCHECK .*healthy\.py", docker, re.MULTILINE)


def test_every_image_is_pinned_by_its_version(compose: dict[str, Any]) -> None:
    docker = (ROOT / "Dockerfile").read_text()
    named = [*re.findall(r"^ARG DEBIAN=(\S+)$", docker, re.MULTILINE), compose["services"]["prometheus"]["image"]]
    assert len(named) == 2
    assert all(re.search(r":v?\d+\.\d+(\.\d+)?(-slim)?$", image) for image in named), named
    assert set(re.findall(r"^FROM (\S+)", docker, re.MULTILINE)) == {"${DEBIAN}"}
