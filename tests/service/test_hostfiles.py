"""Reading files of this host never holds up the loop."""

from __future__ import annotations

import threading
import time

import pytest

from ipamd.errors import ApiError
from ipamd.service import hostfiles
from ipamd.service.hostfiles import HostFiles


async def test_a_text_is_read_in_another_thread() -> None:
    seen: list[bool] = []

    def read(path: str) -> str:
        seen.append(threading.current_thread() is threading.main_thread())
        return f"text of {path}"

    assert await HostFiles(read).text("/a", "x") == "text of /a"
    assert seen == [False]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (FileNotFoundError(2, "No such file or directory"), "No such file or directory"),
        (ValueError("it is odd"), "it is odd"),
    ],
)
async def test_what_cannot_be_read_is_named_with_the_reason(error: Exception, reason: str) -> None:
    def read(path: str) -> str:
        raise error

    with pytest.raises(ApiError, match=f"^ipam.resolvConf /a cannot be read: {reason}$") as refusal:
        await HostFiles(read).text("/a", "ipam.resolvConf")
    assert refusal.value.row.code == "invalid_request"


async def test_a_file_system_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostfiles, "_PATIENCE_S", 0.05)
    gate = threading.Event()

    def read(path: str) -> str:
        gate.wait(600)
        return path

    began = time.monotonic()
    with pytest.raises(ApiError, match="does not answer"):
        await HostFiles(read).text("/a", "x")
    took_s = time.monotonic() - began
    gate.set()
    assert took_s < 300, "it was not waited for"
