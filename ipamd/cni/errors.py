"""Owns the CNI error codes, the exception that carries one, and the error object that a plugin prints."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ipamd.errors import ApiError

BAD_VERSION = 1
BAD_ENVIRONMENT = 4
BAD_INPUT = 5
BAD_JSON = 6
BAD_CONFIG = 7
TRY_AGAIN = 11
NOT_AVAILABLE = 50
EXHAUSTED = 110
ADDRESS_REFUSED = 111
NOT_AUTHORISED = 112
MISMATCH = 113
LATE = 114

_STATUS = {
    BAD_VERSION: 400,
    BAD_ENVIRONMENT: 400,
    BAD_INPUT: 400,
    BAD_JSON: 400,
    BAD_CONFIG: 400,
    TRY_AGAIN: 503,
    NOT_AVAILABLE: 503,
    EXHAUSTED: 409,
    ADDRESS_REFUSED: 409,
    NOT_AUTHORISED: 403,
    MISMATCH: 409,
    LATE: 409,
}


_MSG_CHARS = 1000
"""A sentence that quotes what came in is cut here: a runtime writes it into logs and events."""

_DETAILS_CHARS = 4000


class CniError(Exception):
    """Ends a CNI call. `version` is the configuration's cniVersion, None where it is not known (yet)."""

    def __init__(self, code: int, msg: str, details: str = "", version: str | None = None) -> None:
        super().__init__(msg)
        self.code = code
        self.msg = msg if len(msg) <= _MSG_CHARS else f"{msg[: _MSG_CHARS - 3]}..."
        self.details = details
        self.version = version

    @property
    def status(self) -> int:
        """The HTTP status of the answer that carries it."""
        return _STATUS[self.code]


def of_api_error(error: ApiError) -> CniError:
    """What an error of the shell is to a CNI caller.

    `details` has the clauses about ranges of a full pool for which the sentence has no room; a runtime puts both into
    one line.
    """
    untold = [clause for clause in error.extra.get("ranges", ()) if clause not in error.detail]
    return CniError(error.row.cni, error.detail, "; ".join(untold)[:_DETAILS_CHARS])


def render_error(version: str | None, error: CniError, node: str, request_id: str) -> bytes:
    """The error object of the specification. `version`: the call's; that of the error itself comes first."""
    sentence = error.msg.rstrip().rstrip(".")
    shape: Mapping[str, object] = {
        "cniVersion": error.version or version or "1.1.0",
        "code": error.code,
        "msg": f"{sentence} (node {node}, request {request_id})",
        **({"details": error.details} if error.details else {}),
    }
    return json.dumps(shape).encode()
