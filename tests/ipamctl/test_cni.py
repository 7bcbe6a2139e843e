"""The verbs about the CNI plugin: it is put in its place whole, with an interpreter that is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ipamctl.cni.place import place
from ipamctl.cni.static import compilers


def source() -> bytes:
    spec = find_spec("ipamd_cni")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_bytes()


def test_the_plugin_is_installed_with_the_interpreter_asked_for(ctl, tmp_path):
    done = ctl("cni", "install", "--bin-dir", str(tmp_path), "--python", sys.executable)
    target = tmp_path / "ipamd"
    assert (done.exit_code, done.stdout) == (0, f"installed {target}\n")
    first, _, rest = target.read_bytes().partition(b"\n")
    assert first == f"#!{sys.executable} -IS".encode()
    assert rest == source().partition(b"\n")[2]
    assert target.stat().st_mode & 0o7777 == 0o755


def test_by_default_an_interpreter_is_found(ctl, tmp_path):
    assert ctl("cni", "install", "--bin-dir", str(tmp_path)).exit_code == 0
    interpreter = (tmp_path / "ipamd").read_bytes().split(b"\n")[0].removeprefix(b"#!").removesuffix(b" -IS")
    assert os.access(interpreter, os.X_OK)


def test_installing_again_replaces_the_file_and_leaves_nothing_beside_it(ctl, tmp_path):
    (tmp_path / "ipamd").write_text("an older one")
    assert ctl("cni", "install", "--bin-dir", str(tmp_path), "--python", sys.executable).exit_code == 0
    assert [path.name for path in tmp_path.iterdir() if path.name != "config"] == ["ipamd"]
    assert b"an older one" not in (tmp_path / "ipamd").read_bytes()


@pytest.mark.parametrize(
    ("name", "mode", "part"),
    [
        ("python", None, "there is no interpreter"),
        ("python", 0o644, "is not executable"),
        ("my python", 0o755, "without white space"),
        ("p" * 250, 0o755, "too long"),
    ],
)
def test_an_interpreter_that_cannot_run_it_is_refused(ctl, tmp_path, name, mode, part):
    interpreter = tmp_path / name
    if mode is not None:
        interpreter.touch(mode=mode)
    if mode == 0o644 and os.geteuid() == 0:
        assert not os.access(interpreter, os.X_OK)
    (tmp_path / "bin").mkdir()
    done = ctl("cni", "install", "--bin-dir", str(tmp_path / "bin"), "--python", str(interpreter))
    assert done.exit_code == 1
    assert part in done.stderr
    assert list((tmp_path / "bin").iterdir()) == []


def test_a_relative_interpreter_is_refused(ctl, tmp_path):
    done = ctl("cni", "install", "--bin-dir", str(tmp_path), "--python", "python3")
    assert done.exit_code == 1
    assert "not a full path" in done.stderr


def test_a_directory_that_is_missing_is_named(ctl, tmp_path):
    done = ctl("cni", "install", "--bin-dir", str(tmp_path / "none"), "--python", sys.executable)
    assert done.exit_code == 1
    assert f"there is no directory {tmp_path}/none; make it, or name it with --bin-dir" in done.stderr


def test_a_file_that_cannot_be_put_in_place_leaves_nothing(tmp_path):
    (tmp_path / "ipamd").mkdir()
    with pytest.raises(IsADirectoryError):
        place(b"#!x\n", tmp_path / "ipamd")
    assert [path.name for path in tmp_path.iterdir()] == ["ipamd"]


ANSWER = {
    "dialect": "native",
    "cni_network": "net",
    "cni_version": "1.0.0",
    "pod_ref": "d/a",
    "ifname": "eth0",
    "requested": [],
    "granted": True,
    "code": None,
    "cni_code": None,
    "detail": "",
    "pools": [
        {
            "pool": "web",
            "space": "default",
            "origin": "declared",
            "addresses": ["10.0.0.5/24"],
            "ranges": [
                {
                    "subnet": subnet,
                    "first": "10.0.0.1",
                    "last": "10.0.0.9",
                    "exclude": ["10.0.0.6"],
                    "gateway": None,
                    "free": 5,
                    "verdict": "10.0.0.1-10.0.0.9 has 5 of 8 free",
                }
                for subnet in ("10.0.0.0/24", "10.0.1.0/24")
            ],
        }
    ],
    "result": {"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]},
    "ignored": ["mtu"],
    "notes": ["mtu is ignored: no such key is known"],
}
REFUSED = {
    **ANSWER,
    "granted": False,
    "code": "pool_exhausted",
    "cni_code": 110,
    "detail": "it is full",
    "result": None,
}
NATIVE = {"name": "net", "ipam": {"type": "ipamd", "pool": "web"}}


def test_a_configuration_is_sent_to_be_read(ask, peer, tmp_path):
    conf = tmp_path / "net.conf"
    conf.write_text(json.dumps(NATIVE))
    peer.on("POST", "/v1/cni/test", ANSWER)
    done = ask("cni", "test", str(conf), "--args", "IP=10.0.0.5", "--ifname", "net1")
    assert done.exit_code == 0
    assert peer.last.body == {"conf": NATIVE, "args": "IP=10.0.0.5", "ifname": "net1"}
    for part in ("native", "web", "10.0.0.5/24", "has 5 of 8 free", '{"cniVersion": "1.0.0", "ips"'):
        assert part in done.stdout
    assert done.stdout.count("declared") == 1, "what is the pool's own is said once"
    assert done.stderr == "ipamctl: mtu is ignored: no such key is known\n"


def test_a_configuration_that_would_be_refused_is_shown_and_ends_with_status_1(ask, peer, tmp_path):
    conf = tmp_path / "net.conf"
    conf.write_text(json.dumps(NATIVE))
    peer.on("POST", "/v1/cni/test", REFUSED)
    done = ask("cni", "test", str(conf))
    assert done.exit_code == 1
    for part in ("pool_exhausted", "it is full", "has 5 of 8 free"):
        assert part in done.stdout
    done = ask("cni", "test", str(conf), "-o", "json")
    assert (done.exit_code, json.loads(done.stdout)) == (1, REFUSED)


def test_a_configuration_that_is_no_json_is_a_usage_error(ask, tmp_path):
    (tmp_path / "net.conf").write_text("{")
    assert ask("cni", "test", str(tmp_path / "net.conf")).exit_code == 2
    assert ask("cni", "test", str(tmp_path / "none.conf")).exit_code == 2


def test_of_a_list_of_plugins_the_one_that_asks_for_addresses_is_sent(ask, peer, tmp_path):
    conf = tmp_path / "net.conflist"
    plugins: list[dict[str, object]] = [
        {"type": "tuning"},
        {"type": "bridge", "ipam": {"type": "host-local", "subnet": "10.0.0.0/24"}},
        {"type": "macvlan", "ipam": {"type": "ipamd", "pool": "web"}},
    ]
    conf.write_text(json.dumps({"cniVersion": "1.0.0", "name": "net", "plugins": plugins}))
    peer.on("POST", "/v1/cni/test", ANSWER)
    assert ask("cni", "test", str(conf)).exit_code == 0
    assert peer.last.body == {"conf": {**plugins[2], "cniVersion": "1.0.0", "name": "net"}}
    conf.write_text(json.dumps({"name": "net", "plugins": plugins[:2]}))
    assert ask("cni", "test", str(conf)).exit_code == 0
    assert peer.last.body == {"conf": {**plugins[1], "name": "net"}}
    conf.write_text(json.dumps({"name": "net", "plugins": plugins[:1]}))
    done = ask("cni", "test", str(conf))
    assert (done.exit_code, "none has ipamd, whereabouts, host-local as its IPAM plugin" in done.stderr) == (2, True)


def definition(config: object, name: str = "macvlan-conf") -> str:
    metadata = {"name": name}
    return json.dumps({"kind": "NetworkAttachmentDefinition", "metadata": metadata, "spec": {"config": config}})


def test_a_network_attachment_definition_is_opened(ask, peer, tmp_path):
    peer.on("POST", "/v1/cni/test", ANSWER)
    conf = tmp_path / "net.json"
    conf.write_text(definition(json.dumps(NATIVE)))
    assert ask("cni", "test", str(conf)).exit_code == 0
    assert peer.last.body == {"conf": NATIVE}
    conf.write_text(definition(json.dumps({"ipam": NATIVE["ipam"]})))
    assert ask("cni", "test", str(conf)).exit_code == 0
    assert peer.last.body == {"conf": {**NATIVE, "name": "macvlan-conf"}}


def test_a_network_attachment_definition_without_a_configuration_is_a_usage_error(ask, tmp_path):
    conf = tmp_path / "net.json"
    for config, sentence in ((None, "without spec.config"), ("{", "spec.config of")):
        conf.write_text(definition(config))
        done = ask("cni", "test", str(conf))
        assert (done.exit_code, sentence in done.stderr) == (2, True)


def test_the_static_plugin_is_installed_in_its_place(ctl, tmp_path):
    if not compilers() and os.environ.get("CI") != "true":
        pytest.skip("needs a C compiler (Debian: gcc, libc6-dev)")
    done = ctl("cni", "install", "--bin-dir", str(tmp_path), "--static")
    target = tmp_path / "ipamd"
    assert (done.exit_code, done.stdout) == (0, f"installed {target}\n")
    assert target.stat().st_mode & 0o7777 == 0o755
    said = subprocess.run([target], env={"CNI_COMMAND": "VERSION"}, capture_output=True, check=True, timeout=60)
    assert "1.1.0" in json.loads(said.stdout)["supportedVersions"]


def test_a_static_plugin_that_cannot_be_made_leaves_the_old_one(ctl, tmp_path, monkeypatch):
    (tmp_path / "ipamd").write_text("an older one")
    monkeypatch.setattr("ipamctl.cni.static.compilers", list)
    done = ctl("cni", "install", "--bin-dir", str(tmp_path), "--static")
    assert (done.exit_code, "there is no C compiler here" in done.stderr) == (1, True)
    assert (tmp_path / "ipamd").read_text() == "an older one"


def test_a_static_plugin_needs_no_interpreter(ctl, tmp_path):
    assert ctl("cni", "install", "--bin-dir", str(tmp_path), "--static", "--python", sys.executable).exit_code == 2
