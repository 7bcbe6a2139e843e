"""The group `cni`."""

from __future__ import annotations

import click

from ipamctl.cni.install import install
from ipamctl.cni.test import test


@click.group()
def cni() -> None:
    """The CNI plugin on this host."""


for _verb in (install, test):
    cni.add_command(_verb)
