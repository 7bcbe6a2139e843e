"""Owns a server whose log is compacted often: `python -m tests.support.small_log` in place of `ipamd.main`."""

from __future__ import annotations

from functools import partial

from ipamd.consensus.limits import Limits
from ipamd.main import main
from ipamd.serving import member

KEEP_ENTRIES = 100
SEGMENT_BYTES = 1 << 16

if __name__ == "__main__":
    small = partial(Limits, keep_entries=KEEP_ENTRIES, segment_bytes=SEGMENT_BYTES)
    setattr(member, "Limits", small)  # noqa: B010 - it is a type there, and no setting on purpose
    main()
