"""The page for operators in a real browser: what it shows, and that a name cannot be more than a name."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.server import Server

pytestmark = pytest.mark.needs_chromium

HOSTILE = "default/<img>web-1"
NOTE = "<img src=x onerror=document.title='owned'> \u202e sdrawkcab"


class Browser:
    """A browser that looks at one page and tells what it made of it."""

    def __init__(self, profile: Path, base: str) -> None:
        self._profile, self._base = profile, base

    def sees(self, view: str) -> str:
        """The document after the page has asked for all that it shows."""
        flags = [
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
            *("--disable-background-networking", "--disable-component-update", f"--user-data-dir={self._profile}"),
            *("--virtual-time-budget=4000", "--dump-dom"),
        ]
        command = ["chromium", *flags, f"{self._base}/ui/#/{view}"]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def make(server: Server, path: str, body: object) -> None:
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(server.url + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(asked, timeout=60) as answer:
        assert answer.status in (200, 201)


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("open"), "--insecure").start() as server:
        make(server, "/v1/pools", {"name": "storage", "subnet": "192.0.2.0/24"})
        for number, name in enumerate((HOSTILE, "default/web-2", "default/web-0")):
            body = {"pool": "storage", "pod_ref": name, "container_id": f"c{number}", "node": "w1"}
            make(server, "/v1/reservations", body)
        make(server, "/v1/addresses/192.0.2.9/quarantine", {"note": NOTE})
        yield server


@pytest.fixture
def browser(open_server: Server, tmp_path: Path) -> Browser:
    return Browser(tmp_path, open_server.url)


def test_names_are_shown_as_text(browser: Browser) -> None:
    seen = browser.sees("reservations") + browser.sees("events")
    assert "default/&lt;img&gt;web-1" in seen
    assert "&lt;img src=x onerror=document.title='owned'&gt; \\u{202e} sdrawkcab" in seen
    assert "<img" not in seen
    assert "\u202e" not in seen
    assert seen.count("<title>ipamd</title>") == 2


@pytest.mark.parametrize(
    ("view", "shows"),
    [
        ("pools", ["storage", "192.0.2.0/24", "3 bound"]),
        ("pool/storage", ["would get 192.0.2.4/24", "192.0.2.1 to 192.0.2.254", "default/web-0"]),
        (f"pod/{quote('default/web-0', safe='')}", ["192.0.2.3/24", "bound"]),
        ("node/w1", ["What it holds", "192.0.2.3/24"]),
        ("nodes", ["w1"]),
        ("address/192.0.2.3", ["Who had it", "until now", "default/web-0"]),
        ("events", ["pool_created", "192.0.2.3"]),
        ("cluster", ["n1 (leader)", "reachable"]),
    ],
)
def test_each_view_shows_what_is_there(browser: Browser, view: str, shows: list[str]) -> None:
    seen = browser.sees(view)
    for text in shows:
        assert text in seen, seen
    assert "[object" not in seen
    assert 'id="notice" role="status" hidden=""' in seen


def test_where_tokens_are_asked_for_the_page_asks_too(tmp_path: Path) -> None:
    with Server(tmp_path).start() as server:
        seen = Browser(tmp_path / "profile", server.url).sees("pools")
    assert "This server asks for a token" in seen
    assert 'type="password"' in seen
