"""The network configuration as JSON: its limits, its types, and the sentences about what is wrong."""

from __future__ import annotations

import pytest

from ipamd.cni import config
from ipamd.cni.errors import CniError
from ipamd.core.strictjson import MAX_DEPTH
from tests.support.cni_calls import conf, read, refused


def nested(levels: int) -> object:
    return [] if levels == 1 else [nested(levels - 1)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" \n",
        b"{bad",
        b"[1]",
        b"null",
        b'"x"',
        b'{"name":"net"} {}',
        b'{"name":"\xff"}',
        b'{"name":"net","name":"other"}',
        b'{"name":"net","x":NaN}',
        b'{"name":"\\ud800"}',
        b'{"name":"net","x":"\\u0000"}',
        b'{"name":"net","x":' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"name":"net","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_undecodable_input_has_code_6(body: bytes) -> None:
    assert refused("add", body).code == 6


def test_nesting_is_limited() -> None:
    assert read("add", conf(x=nested(MAX_DEPTH - 1))).cni_network == "net"
    assert refused("add", conf(x=nested(MAX_DEPTH))).code == 6


def test_many_brackets_are_not_many_levels() -> None:
    attachments = [{"containerID": f"c{i}", "ifname": "eth0"} for i in range(200)]
    assert read("gc", conf(**{"cni.dev/valid-attachments": attachments})).cni_network == "net"


def test_a_byte_order_mark_is_no_json() -> None:
    assert refused("add", b"\xef\xbb\xbf{}").code == 6


def test_unknown_keys_are_ignored() -> None:
    assert read("add", conf(bridge="br0", capabilities={"ips": True}, x={"y": [1]})).cni_network == "net"


@pytest.mark.parametrize("name", [None, "", "a/b", "-a", 17, ["net"], "n" * 257])
def test_a_bad_name_has_code_7_and_is_named(name: object) -> None:
    error = refused("add", conf(name=name))
    assert error.code == 7
    assert "name" in error.msg


def test_a_wrong_type_names_key_and_value() -> None:
    with pytest.raises(CniError) as caught:
        config.texts(["a", 17], "ipam.pool")
    assert (caught.value.code, caught.value.msg) == (7, "ipam.pool[1] must be a string, not 17")


def test_a_long_value_is_cut_in_the_sentence() -> None:
    with pytest.raises(CniError) as caught:
        config.mapping(["x" * 1000], "args")
    assert len(caught.value.msg) < 120


def test_null_is_as_good_as_absent() -> None:
    assert config.mapping(None, "x") == {}
    assert config.sequence(None, "x") == []
    assert config.flag(None, "x") is False
