"""Every shell block of README, tutorial and how-to pages is run, or says why it cannot be on one machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.howto import ROOT, Fence, blocks, fences, run

DOCS = ROOT / "docs"
PAGES = sorted([*(DOCS / "tutorial").glob("*.md"), *(DOCS / "howto").glob("*.md"), ROOT / "README.md"])
KINDS = {"sh", "output", "json", "yaml", "toml", "hcl", "ini", "text"}
SHORTEST_REASON = 15


RUN_ELSEWHERE = {
    "dead-node": "test_dead_node.py",
    "from-host-local": "test_howto.py",
    "from-whereabouts": "test_howto.py",
    "monitor": "test_pod_stuck.py",
    "pod-stuck": "test_pod_stuck.py",
    "who-had-it": "test_who_had_it.py",
}
"""Pages whose blocks are run by a test of their own, against what they are about."""

RUN_HERE = [page for page in PAGES if blocks(page) and page.stem not in RUN_ELSEWHERE]


@pytest.mark.needs_root
@pytest.mark.needs_mounts
@pytest.mark.needs_plugins
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: page.stem)
def test_the_page_can_be_followed_word_by_word(page: Path) -> None:
    for one in run(page):
        where = f"{page.name}, line {one.block.line}"
        assert one.status == 0, f"{where} ended with status {one.status}:\n{one.output}"
        assert one.missing is None, f"{where} does not print {one.missing!r}:\n{one.output}"


@pytest.mark.parametrize(("stem", "test"), RUN_ELSEWHERE.items())
def test_the_test_of_a_page_names_it(stem: str, test: str) -> None:
    assert stem in (Path(__file__).parent / test).read_text()
    assert DOCS / "howto" / f"{stem}.md" in PAGES


def excuse(fence: Fence) -> str | None:
    """What is wrong with a fence; None: nothing."""
    if fence.kind not in KINDS:
        return f"is of no kind that is known ({fence.kind or 'none'}); a command's is sh"
    if fence.excuse is not None and len(fence.excuse) < SHORTEST_REASON:
        return "does not say why it is not run"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    wrong = [f"line {fence.line} {why}" for fence in fences(page) if (why := excuse(fence))]
    assert wrong == []


def test_most_blocks_are_run() -> None:
    """The pages are there to be followed: what is not run is what needs other machines or programs."""
    shell = [fence for page in PAGES for fence in fences(page) if fence.kind == "sh"]
    assert sum(fence.excuse is None for fence in shell) > len(shell) / 2


def test_a_block_without_a_kind_and_one_without_a_reason_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```\nls\n```\n<!-- not run: no -->\n```sh\nls\n```\n<!-- not run: it needs a kubelet -->\n```sh\nls\n```\n"
    )
    assert [excuse(fence) is None for fence in fences(page)] == [False, False, True]
    assert blocks(page) == []
