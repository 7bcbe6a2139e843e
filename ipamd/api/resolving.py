"""Owns what a configuration leaves to a file of the node's host: the name service settings of `resolvConf`."""

from __future__ import annotations

from dataclasses import replace

from ipamd.cni.call import AddCall
from ipamd.cni.overrides import Overrides
from ipamd.cni.resolv import parse_resolv_conf
from ipamd.errors import ApiError
from ipamd.service import Services


async def overrides_of(services: Services, call: AddCall, *, is_here: bool = True) -> Overrides:
    """What the configuration of an ADD puts into its result. As in host-local, the file wins. Raises ApiError.

    `is_here`: this host answers the plugin, so that the file is one of this host; else an agent has read it.
    """
    if call.resolv_conf is None:
        return call.overrides
    if call.dns is not None:
        return replace(call.overrides, dns=call.dns)
    if not is_here:
        raise ApiError("invalid_request", f"the agent did not hand on what ipam.resolvConf {call.resolv_conf} says")
    text = await services.files.text(call.resolv_conf, "ipam.resolvConf")
    return replace(call.overrides, dns=parse_resolv_conf(text))
