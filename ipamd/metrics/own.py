"""Owns the samples of a process that answers on sockets, be it a server or an agent: calls, requests, the spool."""

from __future__ import annotations

import platform
from collections.abc import Iterator

from ipamd.errors import ERRORS
from ipamd.metrics.exposition import Sample
from ipamd.service.answers import Answers
from ipamd.service.calls import Calls
from ipamd.service.refusals import Refusals
from ipamd.service.spooling import Spooling

_ADD = "add"
_AT_THE_DOOR = ("unauthorized", "forbidden", "too_many_requests")


def build(program: str, version: str) -> Iterator[Sample]:
    """Which program this is."""
    yield Sample("ipamd_build_info", 1, (program, version, platform.python_version()))


def calls(known: Calls) -> Iterator[Sample]:
    """CNI calls. The codes of ADDs are there from the beginning: a rate knows no increase from nothing to one."""
    at_first = {(_ADD, code): 0 for code in (0, *sorted({row.cni for row in ERRORS.values()}))}
    for (verb, code), count in sorted((at_first | known.by_code).items()):
        yield Sample("ipamd_cni_calls_total", count, (verb, str(code)))
    for verb, times in known.times.items():
        yield Sample("ipamd_cni_call_duration_seconds", times, (verb,))
    yield Sample("ipamd_cni_spooled_total", known.spooled)


def answers(given: Answers) -> Iterator[Sample]:
    """Other requests."""
    for (method, route, status), count in sorted(given.counts.items()):
        yield Sample("ipamd_http_requests_total", count, (method, route, str(status)))


def refusals(known: Refusals) -> Iterator[Sample]:
    """Requests that were refused before anybody looked at what they ask for."""
    for code in (*_AT_THE_DOOR, *sorted(known.by_code.keys() - set(_AT_THE_DOOR))):
        yield Sample("ipamd_requests_refused_total", known.by_code[code], (code,))


def spool(spooling: Spooling | None) -> Iterator[Sample]:
    """The DELs that wait here."""
    yield Sample("ipamd_spool_length", 0 if spooling is None else spooling.length)
    yield Sample("ipamd_spool_refused", 0 if spooling is None else spooling.refused)
