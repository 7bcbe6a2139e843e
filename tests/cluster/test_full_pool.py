"""A full pool, for those who ask for the next free address by hand: the row CLI1."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.support.cluster import BIN, Cluster
from tests.support.plugin import Runtime


def test_cli1_a_full_pool_is_one_sentence_that_names_it(three: Cluster, tmp_path: Path) -> None:
    subprocess.run([str(BIN / "ipamctl"), "cni", "install", "--bin-dir", str(tmp_path)], check=True)
    plugin = Runtime(tmp_path, tmp_path / "ipamd")
    shape = {"subnet": "172.21.0.0/24", "range_start": "172.21.0.10", "range_end": "172.21.0.12"}
    made = three.any().ask("POST", "/v1/pools", {"name": "narrow", **shape})
    assert made.status == 201, made.body
    conf = json.dumps({"cniVersion": "1.1.0", "name": "net", "ipam": {"type": "ipamd", "pool": "narrow"}}).encode()
    for number, member in enumerate(three):
        env = {"CNI_CONTAINERID": f"c{number}", "CNI_ARGS": f"K8S_POD_NAMESPACE=t;K8S_POD_NAME={number}"}
        done = plugin.run("ADD", stdin=conf, IPAMD_CNI_ADDRESS=f"unix:{member.socket}", **env)
        assert done.status == 0, done.stdout
    before = three.level("narrow")
    for member in three:
        for form in ("table", "json", "yaml"):
            refused = three.ctl("-o", form, "reservation", "add", "narrow", "t/next", server=member.name)
            assert (refused.returncode, refused.stdout) == (1, ""), refused
            assert refused.stderr.endswith("\n")
            assert refused.stderr.count("\n") == 1, refused.stderr
            assert "pool narrow has no free address" in refused.stderr
    assert three.level("narrow") == before
    env = {"CNI_CONTAINERID": "c1", "IPAMD_CNI_ADDRESS": f"unix:{three['n2'].socket}"}
    assert plugin.run("DEL", stdin=conf, **env).status == 0
    given = three.ctl("-o", "json", "reservation", "add", "narrow", "t/next")
    assert given.returncode == 0, given.stderr
    freed = {address for address, pod, *_ in before if pod == "t/1"}
    assert set(json.loads(given.stdout)["attachments"][0]["addresses"]) == freed
