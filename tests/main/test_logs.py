"""The log: one event a line, whatever comes in, and no secrets."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from ipamd import logs

HOSTILE = 'a\nb\x1b[31m\u2028\u202ec"\x7f\x85'


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)


def written(log_format: str, level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    logs.configure(log_format, level, stream)
    return stream


def test_json_has_time_level_message_and_fields() -> None:
    stream = written("json")
    logging.getLogger("ipamd.x").warning("pool %s is full", "p", extra={"pool": "p", "free": 0})
    event = json.loads(stream.getvalue())
    assert event["ts"].endswith("Z")
    assert (event["level"], event["msg"], event["pool"], event["free"]) == ("warning", "pool p is full", "p", 0)
    assert event["logger"] == "ipamd.x"


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_hostile_text_stays_on_its_line(log_format: str) -> None:
    stream = written(log_format)
    logging.getLogger("x").info("pod %s", HOSTILE, extra={"pod_ref": HOSTILE})
    line = stream.getvalue()
    assert line.endswith("\n")
    assert line[:-1].isprintable()


def test_json_gives_hostile_text_back() -> None:
    stream = written("json")
    logging.getLogger("x").info("pod", extra={"pod_ref": HOSTILE})
    assert json.loads(stream.getvalue())["pod_ref"] == HOSTILE


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_bearer_token_is_not_written(log_format: str) -> None:
    stream = written(log_format)
    logging.getLogger("x").info("header Authorization: Bearer s3cret-s3cret", extra={"auth": "bearer s3cret-s3cret"})
    logging.getLogger("x").info("made %s", "ipamd_s3cret" + "x" * 40)
    assert "s3cret" not in stream.getvalue()
    assert "***" in stream.getvalue()


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_fault_is_one_line_with_its_traceback(log_format: str) -> None:
    stream = written(log_format)
    try:
        int(HOSTILE)
    except ValueError:
        logging.getLogger("x").exception("it broke")
    assert stream.getvalue().count("\n") == 1
    assert "Traceback" in stream.getvalue()


def test_text_is_for_people() -> None:
    stream = written("text")
    logging.getLogger("x").info("ready", extra={"listen": "127.0.0.1:1", "note": "two words"})
    assert stream.getvalue().split(" ", 1)[1] == 'info    ready logger=x listen=127.0.0.1:1 note="two words"\n'


def test_the_level_counts() -> None:
    stream = written("json", "warning")
    logging.getLogger("x").info("no")
    logging.getLogger("x").error("yes")
    assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == ["yes"]
