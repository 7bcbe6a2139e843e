"""Which versions have which verbs."""

from __future__ import annotations

import pytest

from ipamd.cni.errors import CniError
from ipamd.cni.versions import SUPPORTED, check_version


@pytest.mark.parametrize(
    ("verb", "first"), [("add", "0.1.0"), ("del", "0.1.0"), ("check", "0.4.0"), ("gc", "1.1.0"), ("status", "1.1.0")]
)
def test_a_verb_is_there_from_its_version_on(verb: str, first: str) -> None:
    for version in SUPPORTED:
        if SUPPORTED.index(version) >= SUPPORTED.index(first):
            assert check_version(version, verb) == version
        else:
            with pytest.raises(CniError) as caught:
                check_version(version, verb)
            assert caught.value.code == 1
            assert first in caught.value.msg


def test_an_absent_version_is_the_oldest() -> None:
    assert check_version(None, "add") == "0.1.0"


@pytest.mark.parametrize("version", ["9.9.9", "", "1.0", "1.0.0 ", "v1.0.0", "0.3.2"])
def test_an_unknown_version_has_code_1(version: str) -> None:
    with pytest.raises(CniError) as caught:
        check_version(version, "add")
    assert caught.value.code == 1


@pytest.mark.parametrize("version", [1, 1.1, [], {}, True])
def test_a_version_that_is_no_text_has_code_7(version: object) -> None:
    with pytest.raises(CniError) as caught:
        check_version(version, "add")
    assert caught.value.code == 7
