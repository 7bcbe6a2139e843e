"""What is told of an `ipam` section to a person who checks one."""

from __future__ import annotations

import pytest

from ipamd.cni.dialects.known import reading_of
from ipamd.cni.errors import CniError


def test_keys_that_nobody_reads_are_told_in_their_order():
    ipam = {"type": "ipamd", "rnage": "10.0.0.0/24", "pool": "web", "gatway": "10.0.0.1", "routes": []}
    assert reading_of({"ipam": ipam}) == ("native", ("rnage", "gatway"))


def test_a_section_that_is_no_object_is_refused():
    with pytest.raises(CniError):
        reading_of({"ipam": []})
