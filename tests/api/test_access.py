"""Who may do what, without a server."""

from __future__ import annotations

from typing import cast

import pytest

from ipamd.api.access import NOBODY, OPEN_CALLER, SOCKET_CALLER, Access, Caller, ForNodes, Least, identify
from ipamd.core.model import Role, Token
from ipamd.errors import ApiError
from ipamd.service.tokens import Tokens


class KnownTokens:
    """One secret is known."""

    def bearer(self, secret: str) -> Token | None:
        return Token("t1", "ci", Role.NODE, b"", 0, node="box") if secret == "right" else None

    def used(self, token: Token) -> None:
        assert token.id == "t1"


TOKENS = cast("Tokens", KnownTokens())


@pytest.mark.parametrize(
    ("authorization", "known"),
    [
        ("Bearer right", True),
        ("bearer  right ", True),
        ("Bearer wrong", False),
        ("Basic right", False),
        ("Bearer", False),
        ("", False),
        (None, False),
    ],
)
def test_over_tcp_a_token_says_who_asks(authorization: str | None, known: bool) -> None:
    caller = identify(Access.TOKENS, authorization, TOKENS)
    assert caller == (Caller("token:ci", "token:t1", Role.NODE, "box") if known else None)


def test_the_socket_and_the_open_port_ask_for_nothing() -> None:
    assert identify(Access.SOCKET, None, TOKENS) is SOCKET_CALLER
    assert identify(Access.OPEN, "Bearer wrong", TOKENS) is OPEN_CALLER
    assert (SOCKET_CALLER.role, OPEN_CALLER.role) == (Role.ADMIN, Role.ADMIN)
    assert SOCKET_CALLER.local
    assert not OPEN_CALLER.local, "an open port is not this host"


@pytest.mark.parametrize(
    ("role", "least", "nodes", "may"),
    [
        (Role.READER, Least.READER, ForNodes.NO, True),
        (Role.READER, Least.OPERATOR, ForNodes.ANY, False),
        (Role.OPERATOR, Least.READER, ForNodes.NO, True),
        (Role.OPERATOR, Least.ADMIN, ForNodes.NO, False),
        (Role.ADMIN, Least.ADMIN, ForNodes.NO, True),
        (Role.NODE, Least.READER, ForNodes.NO, False),
        (Role.NODE, Least.OPERATOR, ForNodes.OWN, True),
        (Role.NODE, Least.READER, ForNodes.ANY, True),
        (Role.ENROL, Least.READER, ForNodes.ANY, False),
        (Role.ENROL, Least.ANYBODY, ForNodes.NO, True),
    ],
)
def test_roles(role: Role, least: Least, nodes: ForNodes, may: bool) -> None:
    assert Caller("me", "me", role).may(least, nodes) is may


def test_a_node_token_is_bound_to_its_node() -> None:
    bound = Caller("me", "me", Role.NODE, "box")
    bound.own("box")
    SOCKET_CALLER.own("anything")
    for other in ("crate", None, ""):
        with pytest.raises(ApiError, match="box"):
            bound.own(other)
    assert not NOBODY.may(Least.READER, ForNodes.ANY)
