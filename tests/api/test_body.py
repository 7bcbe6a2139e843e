"""JSON from strangers: what is taken, and that everything else is one sentence."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamd.api.body import read_json, shaped
from ipamd.api.query import decode_cursor, encode_cursor, read_query
from ipamd.api.schema.common import ListQuery
from ipamd.api.schema.pools import PoolBody, PoolQuery
from ipamd.core.strictjson import MAX_DEPTH
from ipamd.errors import ApiError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**128), 2**128) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=3), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        (b"\xff", "UTF-8"),
        (b'\xef\xbb\xbf{"a":1}', "JSON"),
        (b'{"a":1,"b":2,"a":3}', "'a' twice"),
        (b'{"a":1e999}', "too large"),
        (b'{"a":-1e999}', "too large"),
        (b'{"a":NaN}', "NaN"),
        (b'{"a":Infinity}', "Infinity"),
        (b'{"a":' + b"9" * 5000 + b"}", "2^128"),
        (str(2**128 + 1).encode(), "2^128"),
        (b'{"a":"x\\u0000y"}', "a NUL character in 'a': 'x"),
        (b'{"b":{"a":[1,["x\\u0000y"]]}}', "a NUL character in 'a': 'x"),
        (b'{"x\\u0000y":1}', "a NUL character in a key: 'x"),
        (b'"x\\u0000y"', "a NUL character in a string: 'x"),
        (b'{"a":"\\ud800"}', "a surrogate pair in 'a': '"),
        (b"[" * 17 + b"]" * 17, "16 levels"),
        (b"[" * 100_000, "16 levels"),
        (b'{"a":' * 50_000, "16 levels"),
        (b"[1,]", "JSON"),
        (b"{} {}", "JSON"),
        (b"'a'", "JSON"),
    ],
)
def test_what_is_no_good_json_is_refused(raw: bytes, word: str) -> None:
    with pytest.raises(ApiError) as refused:
        read_json(raw)
    assert refused.value.row.code == "invalid_request"
    assert word in refused.value.detail


def test_a_key_that_is_there_twice_is_found_in_one_pass() -> None:
    """Whoever may send a body could keep the loop busy for minutes otherwise."""
    names = [f'"{number}":0' for number in range(60_000)]
    began_s = time.process_time()
    with pytest.raises(ApiError, match="'59999' twice"):
        read_json(f"{{{','.join([*names, names[-1]])}}}".encode())
    assert time.process_time() - began_s < 10


def test_the_limits_themselves_are_taken() -> None:
    assert read_json(str(2**128).encode()) == 2**128
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert read_json(deep.encode()) == json.loads(deep)


@given(JSON)
def test_good_json_is_read_as_it_is(value: Any) -> None:
    raw = json.dumps(value).encode()
    try:
        assert read_json(raw) == value
    except ApiError as error:
        assert "levels" in error.detail  # noqa: PT017 - the only reason that may be left


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_one_sentence(raw: bytes) -> None:
    try:
        read_json(raw)
    except ApiError as error:
        assert error.row.code == "invalid_request"  # noqa: PT017 - nothing else may come out


@given(JSON)
def test_any_value_is_a_pool_or_one_sentence(value: Any) -> None:
    for given_value in (value, {"name": "p", "subnet": value}, {"name": "p", "ranges": value}):
        with pytest.raises(ApiError) as refused:
            shaped(given_value, PoolBody, "body").definition()
        assert refused.value.row.code == "invalid_request"


def test_an_error_names_the_place() -> None:
    body = {"name": "p", "ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "10.0.1.0/24", "exclude": [4]}]]}
    with pytest.raises(ApiError, match=r"body, ranges\[0\]\[1\]\.exclude\[0\]: expected str, got int"):
        shaped(body, PoolBody, "body")


@pytest.mark.parametrize(
    ("raw", "force"), [("", False), ("force", True), ("force=true", True), ("force=0", False), ("force=", True)]
)
def test_flags_of_a_query(raw: str, force: bool) -> None:
    assert read_query(raw, PoolQuery).force is force


@pytest.mark.parametrize("raw", ["&", "&&", "&limit=5", "limit=5&", "limit=5&&stale=ok&"])
def test_a_separator_too_many_separates_nothing(raw: str) -> None:
    assert read_query(raw, ListQuery).limit == (5 if "limit" in raw else 500)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ("limit=%00", "query parameter limit has a NUL character"),
        ("limit=5&cursor=%ff", "query parameter cursor is not UTF-8: %ff"),
        ("%ff=5", "the name of a query parameter is not UTF-8: %ff"),
        ("limit=5&limit=5", "query parameter limit is given twice"),
    ],
)
def test_a_query_that_cannot_be_read_is_refused_by_the_name_of_its_parameter(raw: str, sentence: str) -> None:
    with pytest.raises(ApiError) as refused:
        read_query(raw, ListQuery)
    assert refused.value.detail == sentence


NAMES = st.text(st.characters(exclude_characters="\0"))


@given(NAMES, NAMES)
def test_cursors_come_back(pool: str, pod_ref: str) -> None:
    key = (pool.encode("utf-8", "replace").decode(), pod_ref.encode("utf-8", "replace").decode())
    assert decode_cursor(encode_cursor(*key), tuple[str, str]) == key


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_query_is_read_or_one_sentence(raw: str, cursor: str) -> None:
    for attempt in (lambda: read_query(raw, ListQuery), lambda: decode_cursor(cursor, tuple[str, str])):
        try:
            attempt()
        except ApiError as error:
            assert error.row.code == "invalid_request"  # noqa: PT017 - nothing else may come out


def test_a_cursor_of_another_list_is_refused() -> None:
    with pytest.raises(ApiError, match="cursor"):
        decode_cursor(encode_cursor("p"), tuple[str, str])
    with pytest.raises(ApiError, match="cursor"):
        decode_cursor(msgspec.json.encode("x").decode(), tuple[int])


@pytest.mark.parametrize(
    "lie", [["\ud800"], ["p\0"], [-1], [-(2**70)], [2**63], [2**70], [2**200], [1.5], [None], [["p"]], "p", 10**400]
)
def test_a_cursor_that_no_answer_had_is_refused(lie: object) -> None:
    text = base64.urlsafe_b64encode(json.dumps(lie).encode()).decode().rstrip("=")
    for shape in (tuple[str], tuple[int]):
        with pytest.raises(ApiError, match="cursor"):
            decode_cursor(text, shape)
