"""The verb `token create`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ipamctl.client import route
from ipamctl.exits import Refused, note
from ipamctl.ownfile import refuse_to_overwrite, write
from ipamctl.render import fields
from ipamctl.session import Session, Verb
from ipamctl.token.lasting import Lasting


@click.command(cls=Verb)
@click.argument("name")
@click.option(
    "--role", type=click.Choice(["reader", "operator", "admin", "node", "enrol"]), required=True,
    help="What its bearer may do.",
)  # fmt: skip
@click.option("--node", help="The node that a node token is bound to.")
@click.option(
    "--ttl", "ttl_s", type=Lasting(),
    help="How long it is valid: 30m, 24h, 90d, seconds, or never. Default: 90d; role enrol 24h, role node never.",
)  # fmt: skip
@click.option(
    "--secret-file", type=click.Path(dir_okay=False, path_type=Path),
    help="Write the secret to this new file, mode 0600, and do not print it.",
)  # fmt: skip
@click.pass_obj
def create(session: Session, /, secret_file: Path | None, **options: Any) -> None:
    """Make a token. Its secret is shown this once."""
    if secret_file is not None:
        refuse_to_overwrite(secret_file)
    body = {name: value for name, value in options.items() if value is not None}
    answer = session.client.write("POST", route("tokens"), body)
    secret = answer.get("secret")
    if secret is None:
        raise Refused(f"the answer with the secret got lost: revoke the token {answer['id']} and make another")
    if secret_file is None:
        note("keep the secret now: it is not shown again")
    else:
        _keep(secret_file, secret, answer["id"])
        del answer["secret"]
    session.show(answer, _table)


def _keep(path: Path, secret: str, token_id: str) -> None:
    try:
        write(path, secret.encode() + b"\n")
    except Refused as refused:
        raise Refused(f"{refused.message}; revoke the token {token_id}, whose secret is lost") from None


def _table(answer: Mapping[str, Any]) -> str:
    return fields(answer.items())
