"""What a host sees at the path of a namespace, and what that says: unknown means keep."""

from __future__ import annotations

import pytest

from ipamd.core.evidence import FIRST_NAMESPACE_INODE, Look, is_alive

PATH = "/run/netns/cni-1"
MINE, OTHER = FIRST_NAMESPACE_INODE + 7, FIRST_NAMESPACE_INODE + 8
HERE = (24, 1)

THERE = Look(HERE, MINE, is_namespace=True)
MISSING = Look(HERE)
REPLACED = Look(HERE, OTHER, is_namespace=True)
BARE = Look(HERE, 55)
HIDDEN = Look(None)


@pytest.mark.parametrize(
    ("look", "is_proven", "alive"),
    [
        pytest.param(THERE, True, True, id="there"),
        pytest.param(THERE, False, True, id="there-in-a-place-never-seen"),
        pytest.param(MISSING, True, False, id="gone"),
        pytest.param(MISSING, False, None, id="not-there-in-a-place-never-seen"),
        pytest.param(REPLACED, True, False, id="another-one-in-its-place"),
        pytest.param(REPLACED, False, None, id="another-one-in-a-place-never-seen"),
        pytest.param(BARE, True, None, id="the-bare-file-of-a-mount-that-does-not-reach-here"),
        pytest.param(HIDDEN, True, None, id="unreadable"),
    ],
)
def test_what_a_look_says(look: Look, is_proven: bool, alive: bool | None) -> None:
    assert is_alive(PATH, MINE, look, is_proven=is_proven, is_recorded=False) is alive


@pytest.mark.parametrize("look", [THERE, MISSING, REPLACED, BARE, HIDDEN])
def test_what_was_never_seen_cannot_be_told(look: Look) -> None:
    assert is_alive(PATH, None, look, is_proven=True, is_recorded=False) is None


@pytest.mark.parametrize("path", ["/proc/self/ns/net", "/proc/4711/ns/net"])
def test_a_process_that_is_gone_says_nothing(path: str) -> None:
    assert is_alive(path, MINE, MISSING, is_proven=True, is_recorded=False) is None
    assert is_alive(path, MINE, REPLACED, is_proven=True, is_recorded=False) is None
    assert is_alive(path, MINE, THERE, is_proven=False, is_recorded=False) is True


def test_what_was_no_namespace_is_not_replaced_by_one() -> None:
    """Bound through a host that saw the bare file only; now the mount reaches it, and the number is another one."""
    assert is_alive(PATH, 55, THERE, is_proven=True, is_recorded=False) is None


@pytest.mark.parametrize(
    ("look", "is_proven", "alive"),
    [
        pytest.param(THERE, True, True, id="life-stays-life"),
        pytest.param(MISSING, True, None, id="what-looks-gone-is-kept"),
        pytest.param(MISSING, False, True, id="what-cannot-be-looked-at-lives"),
        pytest.param(HIDDEN, False, True, id="what-is-hidden-lives"),
    ],
)
def test_a_record_adds_life_and_takes_none(look: Look, is_proven: bool, alive: bool | None) -> None:
    assert is_alive(PATH, MINE, look, is_proven=is_proven, is_recorded=True) is alive
