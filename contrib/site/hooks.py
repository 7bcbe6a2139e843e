"""Makes a site of docs/ for mkdocs: its order is that of docs/README.md, and what pages name beside docs/ comes along.

README, changelog and contributing become pages; other files of the project that a page links to lie under `files/`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = {"README.md": "project.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages that lie beside docs/, and what they are called on the site."""

_LINK = re.compile(r"(\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?(\))")
_FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^\*\*([^*]+)\*\*(.*?)(?=^\*\*|\Z)", re.DOTALL | re.MULTILINE)


def on_config(config: Any) -> Any:
    """The navigation: the sections of the index, with their pages in order."""
    sections = [{title: _targets(text, DOCS)} for title, text in _SECTION.findall((DOCS / "README.md").read_text())]
    decisions = DOCS / "decisions"
    last = ["decisions/README.md", *_targets((decisions / "README.md").read_text(), decisions)]
    config.nav = [
        {"Overview": "README.md"},
        *(section for section in sections if "Decisions" not in section),
        {"Decisions": [page for page in last if not page.endswith("template.md")]},
        {"Project": list(PAGES.values())},
    ]
    return config


def on_files(files: Files, config: Any) -> Files:
    """What lies beside docs/ and is linked to."""
    for source, name in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text()))
    for path in sorted({path for page in _sources() for path in _beside(page)}):
        files.append(File.generated(config, _on_site(path), content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A page whose links lead where the site has their targets."""
    name = page.file.src_uri
    origin = next((ROOT / source for source, called in PAGES.items() if called == name), DOCS / name)
    return _outside_fences(markdown, lambda text: _LINK.sub(lambda found: _led(found, origin, name), text))


def _led(found: re.Match[str], origin: Path, name: str) -> str:
    opening, target, anchor, closing = found.groups()
    path = _project_path(origin, target)
    if path is None or not (ROOT / path).exists():
        return found[0]
    there = os.path.relpath(_on_site(path), Path(name).parent)
    return f"{opening}{there}{anchor or ''}{closing}"


def _on_site(path: str) -> str:
    """Where a file of the project lies on the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return PAGES.get(path) or f"files/{path}{'.txt' if path.endswith('.md') or '.' not in Path(path).name else ''}"


def _beside(page: Path) -> list[str]:
    """The files of the project outside docs/ that a page links to and that become no pages."""
    found: list[str] = []

    def look(text: str) -> str:
        paths = [_project_path(page, target) for _, target, _, _ in _LINK.findall(text)]
        found.extend(path for path in paths if path is not None and (ROOT / path).is_file())
        return text

    _outside_fences(page.read_text(), look)
    return [path for path in found if not path.startswith("docs/") and path not in PAGES]


def _project_path(origin: Path, target: str) -> str | None:
    """A link's target as a path in the project; None: it leads elsewhere."""
    if "://" in target or target.startswith("mailto:"):
        return None
    path = (origin.parent / target).resolve()
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else None


def _targets(text: str, folder: Path) -> list[str]:
    paths = [_project_path(folder / "README.md", target) for _, target, _, _ in _LINK.findall(text)]
    pages = [path.removeprefix("docs/") for path in paths if path is not None and path.startswith("docs/")]
    return [page for page in dict.fromkeys(pages) if page != "README.md"]


def _outside_fences(text: str, change: Any) -> str:
    parts = _FENCE.split(text)
    return "".join(part if number % 2 else change(part) for number, part in enumerate(parts))


def _sources() -> list[Path]:
    return [*DOCS.rglob("*.md"), *(ROOT / name for name in PAGES)]
