"""At an agent's socket one has the rights of its node alone; who wants more is told whom to ask."""

from __future__ import annotations

import pytest

SAID = "the role node may not do this; it takes operator"
HINT = "name a server (--server URL --token-file FILE before the group)"


@pytest.mark.parametrize("verb", [("pool", "delete", "p"), ("events", "--follow")], ids=" ".join)
def test_what_is_refused_at_a_socket_names_the_way_to_a_server(ctl, unix_peer, verb):
    for method, path in (("DELETE", "/v1/pools/p"), ("GET", "/v1/events")):
        unix_peer.refuses(method, path, 403, "forbidden", SAID)
    done = ctl("--server", unix_peer.address, *verb)
    assert done.exit_code == 1
    assert done.stderr == f"ipamctl: {SAID}; an agent's socket has the rights of its node alone: {HINT}\n"


@pytest.mark.parametrize("verb", [("pool", "delete", "p"), ("events", "--follow")], ids=" ".join)
def test_who_has_named_a_server_is_not_told_to(ask, peer, verb):
    for method, path in (("DELETE", "/v1/pools/p"), ("GET", "/v1/events")):
        peer.refuses(method, path, 403, "forbidden", SAID)
    assert ask(*verb).stderr == f"ipamctl: {SAID}\n"


def test_what_a_socket_refuses_for_another_reason_is_said_as_it_is(ctl, unix_peer):
    unix_peer.refuses("DELETE", "/v1/pools/p", 409, "pool_in_use", "pool p is in use")
    assert ctl("--server", unix_peer.address, "pool", "delete", "p").stderr == "ipamctl: pool p is in use\n"
