"""Owns trying a how-to page word by word: its shell blocks, in order, on a host that is made for it.

`python -m tests.docs.howto docs/howto/from-host-local.md` shows what happens. It takes root. The host is this one, seen
from mount, network and host name namespaces of its own: what the page writes to /etc, /opt, /run and /var/lib goes to a
layer that vanishes with it. `hosts/PAGE.sh` says what is there before the page begins; without it, a server of one.

A page marks what is run with ```sh. A block ```output behind it is what one sees: each of its lines must come, in this
order; `...` stands for anything. What cannot be run on one machine has a line `<!-- not run: WHY -->` before it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
HOSTS = Path(__file__).parent / "hosts"
PAGE_S = 900
"""How long a whole page may take."""

_FENCE = re.compile(r"(?:^<!-- not run: ([^\n]+) -->\n)?^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = "@@ block"


class Fence(NamedTuple):
    """A block of a page: where it begins, its kind, what is in it, and why it is not run."""

    line: int
    kind: str
    content: str
    excuse: str | None


class Block(NamedTuple):
    """A shell block, where it begins (line of the page), and the lines that one sees."""

    line: int
    script: str
    seen: tuple[str, ...] = ()


class Done(NamedTuple):
    """What became of a block. `status` None: it was not reached."""

    block: Block
    status: int | None
    output: str

    @property
    def missing(self) -> str | None:
        """The first line that one should see and does not."""
        rest = [_joined(line) for line in self.output.splitlines()]
        for wanted in self.block.seen:
            pattern = re.compile(".*".join(map(re.escape, _joined(wanted).split("..."))))
            at = next((number for number, line in enumerate(rest) if pattern.fullmatch(line)), None)
            if at is None:
                return wanted
            rest = rest[at + 1 :]
        return None


def _joined(line: str) -> str:
    """A line with single spaces: how wide a column is depends on all its rows."""
    return " ".join(line.split())


def fences(page: Path) -> list[Fence]:
    """All blocks of a page."""
    text = page.read_text()
    return [
        Fence(text.count("\n", 0, found.start(2)) + 2, found[2], found[3], found[1]) for found in _FENCE.finditer(text)
    ]


def blocks(page: Path) -> list[Block]:
    """The shell blocks of a page that are run."""
    found = list[Block]()
    for fence in fences(page):
        if fence.kind == "sh" and fence.excuse is None:
            found.append(Block(fence.line, fence.content))
        elif fence.kind == "output" and found and fence.excuse is None:
            found[-1] = found[-1]._replace(seen=(*found[-1].seen, *filter(None, fence.content.splitlines())))
    return found


def run(page: Path, tail: str = "", hosts: Path = HOSTS) -> list[Done]:
    """Run the blocks of a page, up to the first that fails; `tail` is one more, which the page does not have.

    `hosts` has what makes the host: host.sh, then one named after the page (else server.sh), and a folder bin.
    """
    todo = [*blocks(page), *([Block(0, tail)] if tail else [])]
    environment = {
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "ROOT": str(ROOT),
        "HOSTS": str(hosts),
        "PAGE": str(page.resolve()),
        "PATH": f"{hosts / 'bin'}:{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin",
        "CNI_BIN": os.environ.get("CNI_BIN", "/usr/lib/cni"),
    }
    own = ["--mount", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
    with tempfile.TemporaryFile() as output:
        ended = subprocess.Popen(
            ["unshare", *own, "bash", "-c", _script(page, hosts, todo)],
            env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            status = ended.wait(PAGE_S)
        except subprocess.TimeoutExpired:
            ended.kill()
            status = ended.wait()
        output.seek(0)
        return list(_results(todo, output.read().decode(), status))


def _script(page: Path, hosts: Path, todo: list[Block]) -> str:
    """The host is made; then each block says by a line where its output begins."""
    own = hosts / f"{page.stem}.sh"
    made = (hosts / "host.sh").read_text() + (own if own.exists() else hosts / "server.sh").read_text()
    marked = "".join(f'echo "{_MARK} {number}"\n{block.script}' for number, block in enumerate(todo))
    return f"set -euo pipefail\n{made}\n{marked}"


def _results(todo: list[Block], output: str, status: int) -> Iterator[Done]:
    parts = re.split(rf"^{_MARK} \d+\n", output, flags=re.MULTILINE)
    if len(parts) == 1:
        raise RuntimeError(f"the host could not be made: {output}")
    for number, block in enumerate(todo):
        is_last = number == len(parts) - 2
        reached = number < len(parts) - 1
        yield Done(block, (status if is_last else 0) if reached else None, parts[number + 1] if reached else "")


def main() -> int:
    """Show a page's blocks and what they print."""
    failed = False
    for done in run(Path(sys.argv[1])):
        typed = "\n".join(f"$ {line}" for line in done.block.script.splitlines())
        missing = "" if done.missing is None else f"this line of the page was not seen: {done.missing}\n"
        sys.stdout.write(f"{typed}\n{done.output}{missing}\n")
        failed = failed or done.status != 0 or done.missing is not None
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
