"""Which boot an agent reports from: the one of its plugins, unless what was said is none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ipamd import system
from tests.agent.attended import attended, config_for
from tests.support.stack import Stack


@pytest.mark.parametrize("said", [{"Ipamd_Boot_Id": "a b"}, {"Ipamd_Boot_Id": "other", "Ipamd_Started": None}])
async def test_reports_go_on_after_a_boot_id_that_is_none(
    stack: Stack, tmp_path: Path, said: dict[str, str | None]
) -> None:
    (netns := tmp_path / "netns").touch()
    async with attended(await config_for(stack, tmp_path / "w1", report_every_s=1)) as node:
        assert (await node.cni("add", CNI_Netns=str(netns))).status == 200
        await node.cni("check", **said)
        netns.unlink()
        for _ in range(600):
            shown = (await stack.ask("GET", "/v1/nodes/w1")).json
            if [one["alive"] for one in shown["attachments"]] == [False]:
                break
            await asyncio.sleep(0.1)
        assert [one["alive"] for one in shown["attachments"]] == [False], "no report came"
        assert [boot["boot_id"] for boot in shown["boots"]] == [system.boot_id()]
        assert shown["state"] == "alive"
