"""Requests made up from the served document: no answer outside it, no fault, and nothing changed by what is refused.

Each operation gets FUZZ_EXAMPLES requests (100), the roles in turn; `make fuzz-api` sends 5,000, other ones each time.
"""

from __future__ import annotations

import itertools
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi import checks

from ipamd.api.openapi import document
from ipamd.api.routes import ROUTES
from tests.fuzz.running import ROLES, Running, serving

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "100"))
OPERATIONS = [(method, path) for path, item in document(ROUTES)["paths"].items() for method in item]
KNOWN = {
    "pool": ("p", "six"),
    "pod_ref": ("t%2Fa0", "t%2Fa1"),
    "address": ("10.0.0.1", "10.0.0.200", "2001:db8::1"),
    "node": ("n7", "node-1", "confirm"),
    "name": ("n1",),
}
"""Parts of paths that mean something: every other request has them. A slash is none in the path."""

FILLED: dict[str, tuple[Any, ...]] = {
    **KNOWN,
    "name": ("n1", "other", "p"),
    "subnet": ("10.9.0.0/24", "10.0.0.0/24", "2001:db8:9::/64"),
    "ranges": ([[{"subnet": "10.8.0.0/29"}]], [[{"subnet": "10.0.0.0/25", "gateway": "10.0.0.1"}]]),
    "pod_ref": ("t/a0", "t/b", "k:t/c"),
    "ifname": ("eth0", "net1"),
    "container_id": ("c0", "c9"),
    "addresses": (["10.0.0.1"], ["10.0.0.99"], []),
    "attachments": ([{"container_id": "c0", "ifname": "eth0", "alive": True}], []),
    "to": ("n8",),
    "raft": ("127.0.0.1:1",),
    "api": ("http://127.0.0.1:1",),
    "ttl_s": (60,),
    "for_s": (60,),
    "networks": ({"net": {"10.0.0.77": "c77\r\neth0"}},),
    "confs": ([],),
}
"""Members of bodies that mean something; the same requests have some of them."""

CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
LEFT_OUT = {"range_start", "range_end", "exclude", "gateway", "routes", "dns", "strategy", "labels", "space", "reclaim"}
LEFT_OUT |= {"cooldown_s", "cooldown_min_s", "hold_s", "created", "inline", "ranges", "ttl_s", "node"}
"""Members that are hardly ever right by chance: half of those bodies go without them."""

TURNS = [turn for role in ROLES[1:] for turn in ("admin", role)]
"""Whose token a request has: every other one that of who may do all."""

UNHURRIED = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=EXAMPLES <= 100,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("fuzzed")) as started:
        yield started


@pytest.fixture(scope="module")
def served(target: Running) -> Any:
    headers = {"Authorization": f"Bearer {target.tokens['reader']}"}
    got = requests.get(f"{target.url}/openapi.json", headers=headers, timeout=60).json()
    assert got["paths"].keys() == document(ROUTES)["paths"].keys()
    return schemathesis.openapi.from_dict(got)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_no_request_leads_out_of_the_document(method: str, path: str, target: Running, served: Any) -> None:
    operation, statuses = served[path][method.upper()], Counter[str]()
    roles, numbers = itertools.cycle(TURNS), itertools.count()
    modes = [operation.as_strategy(generation_mode=mode) for mode in GenerationMode]

    with requests.Session() as session:

        @UNHURRIED
        @given(case=st.one_of(*modes))
        def send(case: Case[Any]) -> None:
            if next(numbers) // 2 % 2:
                _mean_something(case)
            statuses[_exchange(case, target, session, target.tokens[next(roles)])] += 1

        send()
    print(f"\n{method.upper()} {path}: {dict(sorted(statuses.items()))}")  # noqa: T201 - one wants to see what was reached


def _mean_something(case: Case[Any]) -> None:
    """Put in what is known; which of it depends on what was there, so that a request can be repeated."""
    for given_, known in ((case.path_parameters, KNOWN), (case.body, FILLED)):
        if not isinstance(given_, dict):
            continue
        for name in given_.keys() & known.keys():
            at = zlib.crc32(repr(given_[name]).encode("utf-8", "surrogatepass"))
            if given_ is case.path_parameters or at % 8:
                given_[name] = known[name][at % len(known[name])]
    if isinstance(case.body, dict) and len(case.body) % 2:
        for name in case.body.keys() & LEFT_OUT:
            del case.body[name]
        if case.path.startswith("/v1/pools"):
            case.body |= {
                "subnet": FILLED["subnet"][len(case.body) % 3],
                "name": case.path_parameters.get("pool", "new"),
            }


def _exchange(case: Case[Any], target: Running, session: requests.Session, token: str | None) -> str:
    before = target.state()
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    response = case.call(base_url=target.url, session=session, headers=headers, timeout=60)
    case.validate_response(response, checks=CHECKS)
    if response.status_code >= 500:
        assert (response.status_code, response.json()["code"]) == (503, "unavailable"), response.content
    if response.status_code >= 400:
        assert target.state() == before, f"it was refused, and something has changed: {response.content!r}"
        return f"{response.status_code} {response.json()['code']}"
    return str(response.status_code)
