"""Owns the log: one event a line on standard error, as JSON for machines or as text for people; never a secret.

Everything goes through the standard library's logging, that of the libraries too. Fields of an event are given as
`extra={...}`; whatever comes in from outside is escaped, so that it cannot make a line of its own.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import TextIO

_STANDARD = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_LEVELS = {"WARNING": "warning", "CRITICAL": "error"}
_QUIET_LOGGERS = {
    "alembic": logging.WARNING,
    "aiohttp.access": logging.WARNING,
    "asyncio": logging.WARNING,
    "pysyncobj": logging.WARNING,
}
_SECRET = re.compile(r"((?i:bearer)\s+|ipamd_(?=[A-Za-z0-9_-]{40}))[^\s\"'\\]+")


def configure(log_format: str, log_level: str, stream: TextIO | None = None) -> None:
    """Send all logging to `stream` (standard error) in one of the two formats; replaces what was set before."""
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(TextFormatter() if log_format == "text" else JsonFormatter())
    logging.basicConfig(level=log_level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    for name, level in _QUIET_LOGGERS.items():
        logging.getLogger(name).setLevel(level)


def flush() -> None:
    """Write out what the handlers still have; for the moment before the process ends at once."""
    for handler in logging.getLogger().handlers:
        handler.flush()


class JsonFormatter(logging.Formatter):
    """One JSON object a line: ts, level, msg, then the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; ASCII only, so that no control character of any kind is left."""
        event = {"ts": _time(record), "level": _level(record), "msg": _message(record), **_fields(self, record)}
        return _hide(json.dumps(event, ensure_ascii=True, default=str))


class TextFormatter(logging.Formatter):
    """A line for people: time, level, message, then name=value for each field."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        shown = "".join(f" {name}={_plain(value)}" for name, value in _fields(self, record).items())
        return _hide(f"{_time(record)} {_level(record):7} {escaped(_message(record))}{shown}")


def escaped(text: str) -> str:
    """Text with everything that is not printable as an escape sequence; separators of lines and direction too."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _plain(value: object) -> str:
    text = escaped(str(value))
    return json.dumps(text, ensure_ascii=False) if " " in text or '"' in text or not text else text


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _level(record: logging.LogRecord) -> str:
    return _LEVELS.get(record.levelname, record.levelname.lower())


def _message(record: logging.LogRecord) -> str:
    return record.getMessage()


def _fields(formatter: logging.Formatter, record: logging.LogRecord) -> dict[str, object]:
    """What the event was given beside its message; the logger's name; a fault's traceback where there is one."""
    fields: dict[str, object] = {"logger": record.name}
    fields |= {name: value for name, value in record.__dict__.items() if name not in _STANDARD}
    if record.exc_info:
        fields["traceback"] = formatter.formatException(record.exc_info)
    return fields


def _hide(line: str) -> str:
    return _SECRET.sub(r"\1***", line)
