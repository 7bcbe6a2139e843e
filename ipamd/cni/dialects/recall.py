"""Owns the memory of configurations: a cluster has few of them, and each comes again with every pod.

To read one that describes its pools takes a third of the work of an ADD, and what was read is immutable.
"""

from __future__ import annotations

import json
from functools import lru_cache

from ipamd.cni.config import Json
from ipamd.cni.dialects import read_ipam
from ipamd.cni.dialects.ipam import Ipam

READ = ("ipam", "isGateway", "isDefaultGateway")
"""What the dialects read of a configuration, beside `runtimeConfig.ipRanges`."""

MOST = 256
MOST_CHARS = 16 * 1024
"""Longer ones are read each time: what is remembered stays small."""

_write = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def recall_ipam(conf: Json) -> Ipam:
    """The `ipam` section of a configuration, as `read_ipam` reads it. Raises CniError with code 7."""
    ipam, runtime = conf.get("ipam"), conf.get("runtimeConfig")
    if not isinstance(ipam, dict) or ipam.get("pool") is not None:  # is read as quickly as it is looked up
        return read_ipam(conf)
    handed = {"ipRanges": runtime.get("ipRanges")} if isinstance(runtime, dict) else runtime
    text = _write({**{key: conf.get(key) for key in READ}, "runtimeConfig": handed})
    return _read(text) if len(text) <= MOST_CHARS else read_ipam(conf)


@lru_cache(maxsize=MOST)
def _read(text: str) -> Ipam:
    return read_ipam(json.loads(text))
