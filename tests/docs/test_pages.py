"""The docs tell the truth: links lead somewhere, and reference pages agree with the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ipamd.api.access import ForNodes
from ipamd.api.routes import ROUTES
from ipamd.errors import ERRORS
from tests.docs import cli_page, openapi_page

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def broken_links(page: Path) -> list[str]:
    """Links of a page, within the project, that lead nowhere."""
    targets = LINK.findall(FENCE.sub("", page.read_text()))
    local = [target.partition("#") for target in targets if "://" not in target and not target.startswith("mailto:")]
    return [
        f"{path}#{anchor}"
        for path, _, anchor in local
        if not leads_somewhere((page.parent / path) if path else page, anchor)
    ]


def leads_somewhere(target: Path, anchor: str) -> bool:
    return target.exists() and (not anchor or anchor in anchors(target.read_text()))


def anchors(text: str) -> set[str]:
    """The anchors that headings get."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One two\n[a](nowhere.md) [b](#one-two) [c](#three) [d](https://example.org)\n")
    assert broken_links(page) == ["nowhere.md#", "#three"]


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    decisions = (ROOT / "docs" / "decisions" / "README.md").read_text()
    reachable = {(ROOT / "docs" / target).resolve() for target in LINK.findall(index)}
    reachable |= {(ROOT / "docs" / "decisions" / target).resolve() for target in LINK.findall(decisions)}
    assert set((ROOT / "docs").rglob("*.md")) - reachable == {ROOT / "docs" / "README.md"}


def test_the_page_of_ipamctl_is_what_its_commands_say() -> None:
    assert cli_page.page() == cli_page.PAGE.read_text(), "write it anew: python -m tests.docs.cli_page"


def test_what_commands_say_of_themselves_has_no_escape_that_is_shown() -> None:
    """Click's `\\b` is one character: as two it is printed, and the lines behind it are joined."""
    assert "\\b" not in cli_page.page()


def test_the_page_of_requests_and_objects_is_what_the_program_parses() -> None:
    assert openapi_page.page() == openapi_page.PAGE.read_text(), "write it anew: python -m tests.docs.openapi_page"


def test_the_page_of_errors_lists_every_code() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (\d+) \| (\d+) \| (.+) \|$", (ROOT / "docs/reference/errors.md").read_text(), re.MULTILINE
    )
    assert {code: (int(status), int(cni)) for code, status, cni, _ in rows} == {
        row.code: (row.status, row.cni) for row in ERRORS.values()
    }


def test_the_page_of_troubleshooting_helps_with_every_code() -> None:
    text = (ROOT / "docs" / "howto" / "troubleshooting.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (.+) \|$", text, re.MULTILINE)
    assert {code: int(cni) for code, cni, _ in rows} == {row.code: row.cni for row in ERRORS.values()}


def test_the_page_of_the_api_lists_every_route_and_its_role() -> None:
    rows = re.findall(
        r"^\| ([A-Z]+) \| `([^`]+)` \| ([^|]+) \|", (ROOT / "docs/reference/api.md").read_text(), re.MULTILINE
    )
    roles = {
        (route.method, route.path): route.least.name.lower()
        + ("" if route.nodes is ForNodes.NO else ", node")
        + (", enrol" if route.enrols else "")
        for route in ROUTES
    }
    beside = {("GET", "/openapi.json"): "reader", ("POST", "/cni/v1/{verb}"): "node"}
    assert {(method, path): role for method, path, role in rows} == roles | beside


def test_commands_that_pages_name_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"\bmake ([a-z0-9-]+)`", page.read_text())}
    assert named
    assert named <= targets
