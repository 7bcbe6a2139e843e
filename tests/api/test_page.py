"""The page for operators: what is served, under which rules, and that it uses nothing but the public API."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from ipamd import web
from ipamd.api.routes import ROUTES
from tests.support.stack import Stack, running

SOURCES = {
    path.name: path.read_text() for path in Path(web.__file__).parent.iterdir() if path.suffix in {".js", ".html"}
}


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with running(tmp_path) as started:
        yield started


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/ui/", "text/html"), ("/ui/app.js", "text/javascript"), ("/ui/style.css", "text/css")],
)
async def test_the_page_is_there_without_a_token_and_lets_nothing_foreign_in(
    stack: Stack, path: str, kind: str
) -> None:
    got = await stack.ask_tcp("GET", path, token=None)
    assert (got.status, got.headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
    policy = got.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert got.headers["X-Content-Type-Options"] == "nosniff"
    assert got.headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("path", ["/", "/ui"])
async def test_the_root_leads_to_the_page(stack: Stack, path: str) -> None:
    got = await stack.ask_tcp("GET", path, token=None, allow_redirects=False)
    assert (got.status, got.headers["Location"]) == (307, "/ui/")


@pytest.mark.parametrize("path", ["/ui/__init__.py", "/ui/../app.py", "/ui/%2e%2e/errors.py", "/ui/nothing.js"])
async def test_nothing_else_lies_under_it(stack: Stack, path: str) -> None:
    got = await stack.ask_tcp("GET", path, token=None)
    assert (got.status, got.json["code"]) == (404, "not_found")


async def test_every_file_that_a_file_names_is_served(stack: Stack) -> None:
    named = {
        one for text in SOURCES.values() for one in re.findall(r"""(?:src|href|from)[= ]"(?:\./)?([\w.]+)\"""", text)
    }
    assert {"app.js", "api.js", "dom.js", "views.js", "style.css"} <= named
    for name in named:
        assert (await stack.ask_tcp("GET", f"/ui/{name}", token=None)).status == 200, name


def test_no_text_can_become_markup_or_code() -> None:
    for name, text in SOURCES.items():
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
            "Function(",
            "style=",
            " on",
        ):
            found = re.search(rf"(?<![\w.]){re.escape(forbidden)}" + (r"\w+=" if forbidden == " on" else ""), text)
            assert found is None, (name, forbidden)


def test_it_asks_for_public_reads_only() -> None:
    known = {re.sub(r"\{\w+\}", "*", route.path) for route in ROUTES if route.method == "GET"}
    views = SOURCES["views.js"]
    bases = re.findall(r"""(?:ask\(|path = )["`](/v1/[^"`]*)["`]""", views)
    tails = re.findall(r"`\$\{path\}(/\w+)`", views)
    asked = {re.sub(r"\$\{[^}]*\}", "*", path) for path in bases}
    assert len(asked) >= 6
    assert asked <= known
    for tail in tails:
        assert {f"/v1/pools/*{tail}", f"/v1/addresses/*{tail}"} & known, tail
    assert "method:" not in SOURCES["api.js"]  # fetch without one is a GET


async def test_the_refusal_by_which_it_finds_the_newest_event_says_it(stack: Stack) -> None:
    named = set(re.findall(r"error\.document\.(\w+)", SOURCES["views.js"]))
    got = await stack.ask_tcp("GET", f"/v1/events?after={2**53 - 1}&limit=1")
    assert (got.status, got.json["code"]) == (410, "gone")
    assert named == {"newest"}
    assert named <= got.json.keys()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:7480", 200),
        ("[::1]:7480", 200),
        ("localhost", 200),
        ("ipam-1", 200),
        ("ipam-1.rack.internal:7480", 200),
        ("ipam.example.net:7480", 200),
        ("IPAM.example.NET", 200),
        ("evil.example.com:7480", 403),
        ("127.0.0.1.example.com", 403),
        ("localhost.example.com", 403),
        ("", 403),
        ("[", 403),
    ],
)
async def test_without_tokens_a_name_that_a_stranger_could_own_gets_nothing(
    tmp_path: Path, host: str, status: int
) -> None:
    async with running(tmp_path, hosts=("ipam.example.net",)) as stack, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{stack.port}/v1/pools"
        async with session.get(url, headers={"Host": host}) as answer:
            assert answer.status == status
            if status == 403:
                body = await answer.json(content_type="application/problem+json")
                assert (body["code"], "own names" in body["detail"]) == ("forbidden", True)
