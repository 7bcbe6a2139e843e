"""What an agent's requests come to where no server can be reached."""

from __future__ import annotations

import pytest

from ipamd.api.upstream import HttpTransport
from ipamd.core.ports import Unavailable
from ipamd.service.wire import Asked


@pytest.mark.parametrize("host", ["no..host", ".", f"{'a' * 64}.example", "no.such.host.invalid"])
async def test_a_host_that_cannot_be_is_a_server_that_is_not_reached(host: str) -> None:
    transport = HttpTransport(lambda: None, lambda: None)
    with pytest.raises(Unavailable) as caught:
        await transport.exchange(f"http://{host}:7480", Asked("POST", "/cni/v1/del", {}), 2)
    assert caught.value.outcome == "none"
    await transport.close()
