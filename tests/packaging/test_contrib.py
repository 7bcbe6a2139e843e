"""What contrib offers is understood by the programs that it is for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from ipamctl.main import cli
from ipamd.cni.call import AddCall
from ipamd.settings import Host, load_agent
from tests.support.cni_calls import read

CONTRIB = Path(__file__).resolve().parents[2] / "contrib"
UNITS = sorted((CONTRIB / "systemd").iterdir())
NETWORKS = sorted(CONTRIB.rglob("*.conflist"))
DAEMONSET = CONTRIB / "kubernetes" / "ipamd-agent.yaml"
HIDING = {
    *("ProtectSystem", "ProtectHome", "ProtectProc", "ProtectHostname", "ProtectControlGroups"),
    *("ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs"),
    *("PrivateTmp", "PrivateMounts", "PrivateDevices", "PrivateUsers", "PrivateNetwork", "ProcSubset", "MountFlags"),
    *("RootDirectory", "RootImage", "BindPaths", "BindReadOnlyPaths", "TemporaryFileSystem"),
    *("ReadOnlyPaths", "InaccessiblePaths", "NoExecPaths", "ExtensionImages"),
}
"""Options with which systemd gives a service mounts, or namespaces, of its own (systemd.exec(5))."""

SETTINGS = {
    "IPAMD_SERVER": "https://a.example:7480 https://b.example:7480",
    "IPAMD_TOKEN_FILE": "/etc/ipamd/node.token",
    "IPAMD_ENROL_FILE": "/etc/ipamd/enrol.token",
    "IPAMD_TLS_CA": "/etc/ipamd/ca.crt",
}


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    """The manifest's objects by kind."""
    return {found["kind"]: found for found in yaml.safe_load_all(DAEMONSET.read_text())}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_each_unit(unit: Path, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None and os.environ.get("CI") != "true":
        pytest.skip("needs systemd-analyze (Debian: systemd)")
    for other in UNITS:
        text = other.read_text().replace("/opt/ipamd/bin/ipamd", str(Path(sys.executable).with_name("ipamd")))
        (tmp_path / other.name).write_text(text)
    verify = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=one", unit.name]
    done = subprocess.run(verify, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert [line for line in done.stderr.splitlines() if unit.name in line] == []


@pytest.mark.parametrize("unit", [unit for unit in UNITS if unit.suffix == ".service"], ids=lambda unit: unit.name)
def test_no_unit_hides_the_namespaces_of_pods(unit: Path) -> None:
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(unit)
    assert HIDING & set(parser["Service"]) == set()


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: str(path.relative_to(CONTRIB)))
def test_each_network_asks_for_a_pool(path: Path) -> None:
    network = json.loads(path.read_text())
    assert path.stem.removeprefix("10-") == network["name"]
    (plugin,) = [plugin for plugin in network["plugins"] if "ipam" in plugin]
    call = read("add", plugin | {"name": network["name"], "cniVersion": network["cniVersion"]})
    assert isinstance(call, AddCall)
    assert list(call.pools) == ["storage"]


def test_the_name_that_a_nomad_group_gives_is_a_pod() -> None:
    job = (CONTRIB / "nomad" / "database.nomad.hcl").read_text()
    found = re.search(r'IPAMD_POD_REF = "(.*)"', job)
    assert found is not None
    name = re.sub(r"\$\{(\w+)\}", "x", found[1])
    call = read("add", headers={"CNI-Args": f"IgnoreUnknown=1;IPAMD_POD_REF={name}"})
    assert isinstance(call, AddCall)
    assert call.pod_ref == name


def test_the_settings_of_the_daemonset_hold(manifest: dict[str, Any]) -> None:
    (container,) = manifest["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    given = manifest["ConfigMap"]["data"] | {variable["name"]: "worker-1" for variable in container["env"]}
    config = load_agent({}, given, Host("pod-x", is_container=True))
    assert config.node_name == "worker-1"
    mounts = [Path(mount["mountPath"]) for mount in container["volumeMounts"]]
    paths = (config.socket, config.spool_dir, config.token_file, config.enrol_file, config.tls_ca)
    for path in (*paths, *config.cni_cache_dir):
        assert path is not None
        assert any(path.is_relative_to(mount) for mount in mounts), path


def test_the_token_of_a_node_lies_on_the_node_and_the_secret_of_all_can_only_be_read(manifest: dict[str, Any]) -> None:
    pod = manifest["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for path, kind in (("IPAMD_TOKEN_FILE", "hostPath"), ("IPAMD_ENROL_FILE", "secret"), ("IPAMD_TLS_CA", "secret")):
        place = Path(manifest["ConfigMap"]["data"][path])
        (mount,) = [one for one in container["volumeMounts"] if place.parent == Path(one["mountPath"])]
        assert kind in volumes[mount["name"]], path
        assert mount.get("readOnly", False) is (kind == "secret")
    page = (CONTRIB.parent / "docs" / "howto" / "install-daemonset.md").read_text()
    assert f"create secret generic {volumes['settings']['secret']['secretName']} " in page
    assert f"--from-file={Path(manifest['ConfigMap']['data']['IPAMD_ENROL_FILE']).name} " in page


def test_the_daemonset_has_no_way_to_the_api_of_kubernetes(manifest: dict[str, Any]) -> None:
    assert set(manifest) == {"Namespace", "ConfigMap", "DaemonSet"}
    pod = manifest["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod


def test_the_agent_of_the_daemonset_sees_namespaces_that_come_later(manifest: dict[str, Any]) -> None:
    (container,) = manifest["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    propagation = {mount["mountPath"]: mount.get("mountPropagation") for mount in container["volumeMounts"]}
    assert propagation["/var/run/netns"] == "HostToContainer"


def test_every_volume_is_used_and_every_mount_has_one(manifest: dict[str, Any]) -> None:
    pod = manifest["DaemonSet"]["spec"]["template"]["spec"]
    mounted = {mount["name"] for one in (*pod["containers"], *pod["initContainers"]) for mount in one["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_its_commands_are_ours(manifest: dict[str, Any]) -> None:
    (init,) = manifest["DaemonSet"]["spec"]["template"]["spec"]["initContainers"]
    program, *arguments = init["command"]
    assert program == "ipamctl"
    assert CliRunner().invoke(cli, [*arguments, "--help"]).exit_code == 0


def test_the_settings_that_the_unit_of_the_agent_names_hold() -> None:
    unit = (CONTRIB / "systemd" / "ipamd-agent.service").read_text()
    named = dict(re.findall(r"^#\s+(IPAMD_\w+)=(.*)$", unit, re.MULTILINE))
    assert named == SETTINGS
    assert load_agent({}, named, Host("worker-1", is_container=False)).node_name == "worker-1"
