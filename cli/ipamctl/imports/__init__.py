"""The group `import`."""

from __future__ import annotations

import click

from ipamctl.imports.host_local import host_local
from ipamctl.imports.whereabouts import whereabouts


@click.group("import")
def import_() -> None:
    """Take over what another IPAM plugin has given away: all of it or nothing."""


for _verb in (whereabouts, host_local):
    import_.add_command(_verb)
