"""The group `tls`."""

from __future__ import annotations

import click

from ipamctl.tls.init import init
from ipamctl.tls.issue import issue
from ipamctl.tls.renew import renew


@click.group()
def tls() -> None:
    """Certificates of members and clients, from an authority of your own; no server is asked."""


for _verb in (init, issue, renew):
    tls.add_command(_verb)
