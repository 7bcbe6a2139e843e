"""The site that `make docs` builds: strictly, and no link in it leads nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD_S = 500


class Page(HTMLParser):
    """What a page of the site links to, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := given.get(name))}
        for name in ("href", "src"):
            if (link := given.get(name)) and tag in {"a", "img", "link", "script"}:
                self.links.append(link)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    if find_spec("mkdocs") is None and os.environ.get("CI") != "true":
        pytest.skip("needs mkdocs-material (the extra `docs`)")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=BUILD_S,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def dead_links(site: Path) -> list[str]:
    """Each link within the site that leads nowhere, with its page."""
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    return [
        f"{path.relative_to(site)}: {link}"
        for path, page in pages.items()
        for link in page.links
        if not _leads_somewhere(path, link, pages)
    ]


def _leads_somewhere(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    return target.exists() and (not parts.fragment or target not in pages or parts.fragment in pages[target].anchors)


def test_no_link_leads_nowhere(site: Path) -> None:
    assert dead_links(site) == []


def test_every_page_of_the_project_is_on_the_site(site: Path) -> None:
    docs = ROOT / "docs"
    wanted = {path.relative_to(docs).with_suffix(".html") for path in docs.rglob("*.md")}
    named = {path.with_name("index.html") if path.name == "README.html" else path for path in wanted}
    there = {path.relative_to(site) for path in site.rglob("*.html")}
    assert named - there == set()
    assert {Path("project.html"), Path("changelog.html"), Path("contributing.html")} <= there


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text('<a href="two.html#b">x</a><a href="two.html#c">x</a><a href="three.html">x</a>')
    (tmp_path / "two.html").write_text('<p id="b">x</p>')
    assert dead_links(tmp_path) == ["one.html: two.html#c", "one.html: three.html"]
