"""The how-to pages about changing over can be followed word by word: every shell block is run, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.howto import ROOT, Done, blocks, run

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.needs_mounts,
    pytest.mark.needs_plugins,
    pytest.mark.timeout(1000),
]

HOWTO = ROOT / "docs" / "howto"
STORY = "cat /run/story.log; ipamctl -o json reservation list | python3 -c '{}'"
HOLDERS = """
import json, sys
for item in json.load(sys.stdin)["items"]:
    for one in item["attachments"]:
        print(item["pod_ref"], one["ifname"], one["container_id"], *one["addresses"])
"""


def followed(name: str) -> Done:
    """Run a page to its end; what is behind it."""
    done = run(HOWTO / f"{name}.md", STORY.format(HOLDERS))
    for one in done:
        where = f"{name}.md, line {one.block.line}"
        assert one.status == 0, f"{where} ended with status {one.status}:\n{one.output}"
        assert one.missing is None, f"{where} does not print {one.missing!r}:\n{one.output}"
    return done[-1]


def test_from_host_local() -> None:
    assert followed("from-host-local").output.splitlines() == [
        "DEL 4be1 eth0 ",
        "ADD d00d eth0 10.88.1.5/24 ",
        "_/node-1/77aa eth0 77aa 10.88.1.3/24",
        "_/node-1/9c02 eth0 9c02 10.88.1.4/24",
        "default/web-1 eth0 d00d 10.88.1.5/24",
    ]


def test_what_the_page_of_host_local_says_beside(tmp_path: Path) -> None:
    """The other ways that it names: nodes that share a subnet, spaces, and runtimes that replay the ADD."""
    page = tmp_path / "from-host-local.md"
    page.write_text((HOWTO / page.name).read_text().partition("```sh")[0] + BESIDE)
    for one in run(page):
        assert (one.status, one.missing) == (0, None), one.output


BESIDE = """
```sh
pods=/etc/cni/net.d/10-pods.conflist
ipamctl import host-local /var/lib/cni/networks --conf $pods
ipamctl node list
```
```output
10.88.1.0-24  default  yes  3  0  0
unclaimed  -  3  -  -  -  -  -  -
```
Another node has given 10.88.1.2 too:
```sh
mkdir -p other/pods
printf 'c0ffee\\r\\neth0' > other/pods/10.88.1.2
! ipamctl import host-local other --node node-2 --conf $pods
```
```output
ipamctl: pods/10.88.1.2: 10.88.1.2 is held by eth0 of _//4be1, container 4be1...
```
A space of its own; host-local does not mind the key:
```sh
sed -i 's/"type": "host-local"/"type": "host-local", "space": "node-2"/' $pods
ipamctl import host-local other --node node-2 --conf $pods
cni ADD $pods 5ad eth0
```
```output
node-2-10.88.1.0-24  node-2  yes  1  0  0
ADD 5ad eth0 10.88.1.5/24
```
The rest is nobody's:
```sh
ipamctl node release --unclaimed --yes
ipamctl node list
```
```output
released  3
node-2 unknown 1 ...
```
"""


def test_from_whereabouts() -> None:
    assert followed("from-whereabouts").output.splitlines() == [
        "ADD f00d net1 10.90.0.10/24 ",
        "ADD beef net1 10.90.0.12/24 ",
        "default/new-0 net1 beef 10.90.0.12/24",
        "default/web-0 net1 f00d 10.90.0.10/24",
    ]


@pytest.mark.parametrize("name", ["from-host-local", "from-whereabouts"])
def test_what_is_typed_is_marked_as_such(name: str) -> None:
    """A block without a kind would be passed over."""
    text = (HOWTO / f"{name}.md").read_text()
    fences = [line for line in text.splitlines() if line.startswith("```")]
    assert set(fences[::2]) <= {"```sh", "```output", "```json", "```yaml"}
    assert set(fences[1::2]) == {"```"}
    assert len(blocks(HOWTO / f"{name}.md")) == fences.count("```sh")


def told(tmp_path: Path, text: str) -> list[Done]:
    """Run a page on a host with nothing on it."""
    (tmp_path / "page.md").write_text(text)
    for name in ("host.sh", "page.sh"):
        (tmp_path / name).touch()
    return run(tmp_path / "page.md", hosts=tmp_path)


def test_a_block_that_fails_is_told_and_ends_the_page(tmp_path: Path) -> None:
    text = "```sh\necho one\n```\n```sh\nfalse\necho two\n```\n```sh\necho 3\n```\n"
    first, second, third = told(tmp_path, text)
    assert (first.status, first.output) == (0, "one\n")
    assert (second.status, second.output) == (1, "")
    assert third.status is None


def test_a_line_that_is_not_printed_is_told(tmp_path: Path) -> None:
    text = "```sh\necho 'a   b'\necho c d\n```\n```output\na b\n{}\n```\n"
    assert told(tmp_path, text.format("c ..."))[0].missing is None
    assert told(tmp_path, text.format("d"))[0].missing == "d"
