"""Owns this member's certificates while it serves: read, followed, and how long they last."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable

from ipamd import system
from ipamd.settings import Config
from ipamd.tls import Tls, TlsError, TlsFiles

logger = logging.getLogger("ipamd")

TLS_LOOK_S = 10.0
TLS_DAYS = 30
_DAY_S = 86_400


def tls_of(config: Config) -> Tls | None:
    """The certificates that the settings name; None: none. Raises TlsError."""
    if config.tls_cert is None or config.tls_key is None or config.tls_ca is None:
        return None
    return Tls(TlsFiles(config.tls_cert, config.tls_key, config.tls_ca), config.member_name)


def trust_of(tls: Tls | None) -> Callable[[str | None], ssl.SSLContext | None]:
    """What another member must show, by its name; None as the name: whichever member it is."""
    if tls is None:
        return lambda _name: None
    return lambda name: tls.client if name is None else tls.client_of(name)


def days_of(tls: Tls | None) -> Callable[[], int | None]:
    """Asks how many days the own certificate lasts still; None: there is no TLS."""
    return lambda: None if tls is None else tls.days_left(system.SystemClock().wall_ms() / 1000)


async def follow(tls: Tls) -> None:
    """Read new certificates soon after they are there, and say each day that the own one or its authority ends soon."""
    said_s = 0.0
    while True:
        refresh(tls)
        now_s = system.SystemClock().wall_ms() / 1000
        if tls.days_left(now_s) < TLS_DAYS and now_s - said_s >= _DAY_S:
            said_s = now_s
            _warn(tls, now_s)
        await asyncio.sleep(TLS_LOOK_S)


def _warn(tls: Tls, now_s: float) -> None:
    """A certificate never outlives its authority: where that ends soon, renewing the certificate gains nothing."""
    days = tls.authority_days_left(now_s)
    if days < TLS_DAYS:
        logger.warning(
            "the authority of the members' certificates ends in %s days: nothing signed by it counts then", days
        )
    else:
        logger.warning("the certificate of this member ends in %s days: ipamctl tls renew", tls.days_left(now_s))


def refresh(tls: Tls) -> None:
    """Read certificates that have changed; where they cannot be used the old ones serve on."""
    try:
        if tls.refresh():
            logger.info("the certificates were read again", extra={"ends_s": int(tls.read.ends_s)})
    except TlsError as error:
        logger.error("the certificates are not taken, the old ones serve on: %s", error)  # noqa: TRY400 - a sentence
