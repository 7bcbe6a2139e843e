"""The CNI error object, and what refusals of the core are to a CNI caller."""

from __future__ import annotations

import json

import pytest

from ipamd.cni import errors
from ipamd.cni.errors import CniError, of_api_error, render_error
from ipamd.core.outcomes import Code
from ipamd.errors import ERRORS, ApiError


def test_an_error_object_has_what_the_specification_asks_for() -> None:
    shape = json.loads(render_error("0.4.0", CniError(110, "Pool p is full.", "more"), "n1", "r-1"))
    assert shape == {
        "cniVersion": "0.4.0",
        "code": 110,
        "msg": "Pool p is full (node n1, request r-1)",
        "details": "more",
    }


def test_details_are_left_out_where_there_are_none() -> None:
    assert "details" not in json.loads(render_error("1.0.0", CniError(11, "later"), "n1", "r-1"))


@pytest.mark.parametrize(
    ("call", "own", "version"), [("0.4.0", None, "0.4.0"), (None, "0.3.1", "0.3.1"), (None, None, "1.1.0")]
)
def test_the_version_is_the_best_that_is_known(call: str | None, own: str | None, version: str) -> None:
    assert json.loads(render_error(call, CniError(7, "no", version=own), "n1", "r"))["cniVersion"] == version


def test_whatever_is_in_the_sentence_the_object_is_one_line_of_ascii() -> None:
    text = render_error("1.0.0", CniError(7, 'a "b" \n \ud800 é'), "n1", "r")
    assert text.isascii()
    assert b"\n" not in text
    assert json.loads(text)["code"] == 7


@pytest.mark.parametrize(
    ("code", "cni", "status"),
    [
        (Code.POOL_NOT_FOUND, 7, 400),
        (Code.POOL_EXHAUSTED, 110, 409),
        (Code.ADDRESS_TAKEN, 111, 409),
        (Code.ADDRESS_NOT_ALLOWED, 111, 409),
        (Code.LATE, 114, 409),
        (Code.RESERVATION_NOT_FOUND, 113, 409),
    ],
)
def test_refusals_have_their_cni_codes(code: Code, cni: int, status: int) -> None:
    error = of_api_error(ApiError(code, "why"))
    assert (error.code, error.msg, error.status) == (cni, "why", status)


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_every_error_of_the_shell_has_a_code_and_a_status(code: str) -> None:
    error = of_api_error(ApiError(code, "why"))
    assert error.code == ERRORS[code].cni
    assert 400 <= error.status < 600


def test_every_code_of_ours_has_a_status() -> None:
    codes = [
        value for name, value in vars(errors).items() if name[0].isalpha() and name.isupper() and isinstance(value, int)
    ]
    assert len(codes) == 12
    assert all(400 <= CniError(code, "why").status < 600 for code in codes)
