"""The verb `tls renew`."""

from __future__ import annotations

from pathlib import Path

import click

from ipamctl.ownfile import write
from ipamctl.tls.place import CA, certificate, directory_option, key, read


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@directory_option
def renew(*, names: tuple[str, ...], directory: Path) -> None:
    """Sign certificates again for the same keys, for two more years. Running servers read them without a restart."""
    from ipamctl.tls import authority  # noqa: PLC0415 - slow to load, and only three verbs need it

    signer = authority.Pair(read(certificate(directory, CA)), read(key(directory, CA)))
    for name in names:
        file = certificate(directory, authority.check_name(name))
        renewed = authority.renew(signer, read(file))
        write(file, renewed)
        click.echo(f"{file}: until {authority.ends(renewed):%Y-%m-%d}")
