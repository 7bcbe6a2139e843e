"""The verb `tls init`."""

from __future__ import annotations

from pathlib import Path

import click

from ipamctl.ownfile import refuse_to_overwrite, write
from ipamctl.tls.place import CA, certificate, directory_option, key


@click.command()
@click.option("--name", default="ipamd", show_default=True, help="What the authority calls itself.")
@directory_option
def init(*, name: str, directory: Path) -> None:
    """Make an authority that signs the certificates of one cluster. Keep its key off the servers."""
    from ipamctl.tls.authority import AUTHORITY_DAYS, make_authority  # noqa: PLC0415 - slow to load, for three verbs

    certificate_file, key_file = certificate(directory, CA), key(directory, CA)
    refuse_to_overwrite(certificate_file, key_file)
    made = make_authority(name)
    write(key_file, made.key)
    write(certificate_file, made.certificate)
    click.echo(f"{certificate_file} and {key_file}: an authority for {AUTHORITY_DAYS // 365} years")
