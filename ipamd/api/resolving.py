"""Owns what a configuration leaves to a file of this host: the name service settings of `resolvConf`."""

from __future__ import annotations

from dataclasses import replace

from ipamd.cni.call import AddCall
from ipamd.cni.overrides import Overrides
from ipamd.cni.resolv import parse_resolv_conf
from ipamd.service import Services


async def overrides_of(services: Services, call: AddCall) -> Overrides:
    """What the configuration of an ADD puts into its result. As in host-local, the file wins. Raises ApiError."""
    if call.resolv_conf is None:
        return call.overrides
    text = await services.files.text(call.resolv_conf, "ipam.resolvConf")
    return replace(call.overrides, dns=parse_resolv_conf(text))
