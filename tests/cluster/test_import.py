"""An import on three members: it enters through any of them, goes on when its leader dies, and is the same everywhere."""

from __future__ import annotations

import threading
from contextlib import suppress

from tests.support.cluster import Away, Cluster
from tests.support.dumps import whereabouts_dump

PATH = "/v1/import?format=whereabouts"
KEY = "an-import"


def test_an_import_is_the_same_on_all_members_while_others_go_on(three: Cluster, pool: str) -> None:
    entries, given, ended = 4_000, 0, threading.Event()
    asked = three.followers()[0]

    def call() -> None:
        nonlocal given
        while not ended.is_set():
            with suppress(Away):
                given += asked.add(f"c{given}", f"t/p{given}", pool=pool, timeout_s=20).code == 0

    caller = threading.Thread(target=call)
    caller.start()
    try:
        done = asked.ask("POST", PATH, whereabouts_dump(entries), 60)
    finally:
        ended.set()
        caller.join()
    assert (done.status, done.json["made"]) == (200, entries)
    assert given > 0
    assert len(three.level("10.80.0.0-16")) == entries // 2
    assert len(three.level("10.81.0.0-16")) == entries // 2
    again = three["n1"].ask("POST", PATH, whereabouts_dump(entries), 60)
    assert (again.json["made"], again.json["kept"]) == (0, entries)


def test_an_import_whose_leader_dies_is_whole_or_not_there(three: Cluster) -> None:
    """Asked again under its key it is carried out, once."""
    entries = 2_000
    dump = whereabouts_dump(entries)
    for item in dump["items"]:  # other networks than those of the other test
        item["metadata"]["name"] = f"blue-{item['metadata']['name']}"
    leader = three.leader()
    asked = three.followers()[0]
    killer = threading.Timer(0.4, leader.kill)
    killer.start()
    with suppress(Away):
        asked.ask("POST", PATH, dump, 60, **{"Idempotency-Key": KEY})
    killer.join()
    left = three.level("blue-10.80.0.0-16")
    assert len(left) in (0, entries // 2)
    done = asked.ask("POST", PATH, dump, 60, **{"Idempotency-Key": KEY})
    assert (done.status, done.json["made"], done.json["kept"]) == (200, entries, 0)
    assert len(three.level("blue-10.80.0.0-16")) == entries // 2
