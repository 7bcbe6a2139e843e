"""The rules for names: what passes, what does not, and that the sentence names value and rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipamd.core import names
from ipamd.core.names import InvalidName


@pytest.mark.parametrize("text", ["p", "0", "a.b_c+d-e", "A" * 128])
def test_a_good_name_passes(text: str) -> None:
    assert names.check_name(text, "pool") == text


@pytest.mark.parametrize("text", ["", "-a", ".a", "_a", "+a", "a b", "a/b", "a:b", "ä", "a\n", "a\x00", "A" * 129])
def test_a_bad_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidName, match="pool"):
        names.check_name(text, "pool")


@pytest.mark.parametrize("text", ["c1", "A.b-9", "a_b", "a" * 256])
def test_a_good_container_id_passes(text: str) -> None:
    assert names.check_container_id(text) == text
    assert names.check_network(text) == text


@pytest.mark.parametrize("text", ["", "-x", "a b", "a/b", "a+b", "a\n", "a" * 257])
def test_a_bad_container_id_is_refused(text: str) -> None:
    for check in (names.check_container_id, names.check_network):
        with pytest.raises(InvalidName):
            check(text)


@pytest.mark.parametrize("text", ["e", "abcdefghijklmno", "eth0.100", "...", "ä" * 7])
def test_a_good_ifname_passes(text: str) -> None:
    assert names.check_ifname(text) == text


@pytest.mark.parametrize(
    "text", ["", ".", "..", "abcdefghijklmnop", "a/b", "a:b", "a b", "a\tb", "a\u00a0b", "a\x00", "a\x1b", "ä" * 8]
)
def test_a_bad_ifname_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        names.check_ifname(text)


@pytest.mark.parametrize("text", ["n1", "east:n1"])
def test_a_node_may_have_a_cluster(text: str) -> None:
    assert names.check_node(text) == text


@pytest.mark.parametrize("text", ["", ":n1", "east:", "a:b:c", "n/1"])
def test_a_bad_node_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        names.check_node(text)


@pytest.mark.parametrize(
    "text", ["t/a", "Web_1/Web_1", "_/n1/c1", "east:t/a", "east:_/n1/c1", f"{'n' * 63}/{'p' * 253}", "t/ä b"]
)
def test_a_good_pod_ref_passes(text: str) -> None:
    assert names.check_pod_ref(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no-slash",
        "/a",
        "t/",
        "t/a/b",
        "_/n1/",
        "_//c1",
        "_/n1/c1/d",
        "a:b:t/a",
        ":t/a",
        "t/a\x00b",
        "t/\ud800",
        f"{'n' * 64}/p",
        f"n/{'p' * 254}",
        f"{'ä' * 32}/p",
    ],
)
def test_a_bad_pod_ref_is_refused(text: str) -> None:
    with pytest.raises(InvalidName):
        names.check_pod_ref(text)


def test_pod_refs_are_made_of_what_is_known() -> None:
    assert names.pod_ref_of("t", "a") == "t/a"
    assert names.container_pod_ref("n1", "c1") == "_/n1/c1"
    assert names.with_cluster("east", "t/a") == "east:t/a"
    assert names.with_cluster(None, "t/a") == "t/a"


@pytest.mark.parametrize(("namespace", "name"), [("", "a"), ("t", ""), ("t/u", "a"), ("t", "a/b"), ("t", "a:b")])
def test_halves_that_would_blur_the_pod_ref_are_refused(namespace: str, name: str) -> None:
    with pytest.raises(InvalidName):
        names.pod_ref_of(namespace, name)


def test_a_long_value_is_cut_in_the_sentence() -> None:
    with pytest.raises(InvalidName) as caught:
        names.check_name("x" * 10_000, "pool")
    assert len(str(caught.value)) < 250


@given(st.text(), st.text())
def test_two_pods_never_share_a_pod_ref(left: str, right: str) -> None:
    try:
        made = names.pod_ref_of(left, right)
    except InvalidName:
        return
    assert names.check_pod_ref(made) == made
    assert names.split_pod_ref(made) == (left, right)


@given(st.text())
def test_every_check_passes_the_text_or_refuses_it_in_printable_words(text: str) -> None:
    for check in (
        names.check_node,
        names.check_container_id,
        names.check_ifname,
        names.check_pod_ref,
        names.check_pod_uid,
    ):
        said = ""
        try:
            assert check(text) == text
        except InvalidName as error:
            said = str(error)
        assert said.isprintable()
