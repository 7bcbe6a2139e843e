"""The verb `tls issue`."""

from __future__ import annotations

from pathlib import Path

import click

from ipamctl.exits import Refused
from ipamctl.ownfile import refuse_to_overwrite, write
from ipamctl.tls.place import CA, certificate, directory_option, key, read


@click.command()
@click.argument("name")
@click.option("--dns", multiple=True, metavar="HOST", help="A host name that it is reached by; the own name is one.")
@click.option("--ip", multiple=True, metavar="ADDRESS", help="An address that it is reached by.")
@click.option("--client", is_flag=True, help="For a client that is no member.")
@directory_option
def issue(*, name: str, dns: tuple[str, ...], ip: tuple[str, ...], client: bool, directory: Path) -> None:
    """Make a key, and sign a certificate for the member NAME (or a client): for two years."""
    from ipamctl.tls import authority  # noqa: PLC0415 - slow to load, and only three verbs need it

    if authority.check_name(name) == CA:
        raise Refused(f"{CA} is the authority's own name")
    certificate_file, key_file = certificate(directory, name), key(directory, name)
    refuse_to_overwrite(certificate_file, key_file)
    signer = authority.Pair(read(certificate(directory, CA)), read(key(directory, CA)))
    made = authority.issue(signer, authority.Wanted(name, dns, ip, client))
    write(key_file, made.key)
    write(certificate_file, made.certificate)
    click.echo(f"{certificate_file} and {key_file}: until {authority.ends(made.certificate):%Y-%m-%d}")
