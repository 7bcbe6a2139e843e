"""Owns network configurations as files: a plugin's, a list of plugins, or a NetworkAttachmentDefinition around them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ipamctl.documents import name_of, read_document

IPAM_TYPES = ("ipamd", "whereabouts", "host-local")
"""Of a list of plugins that one counts whose IPAM plugin is the first of these."""


def read_configuration(path: Path) -> Any:
    """What a container runtime hands to a plugin. Raises click.UsageError."""
    return one_plugin(unwrapped(read_document(path), name_of(path)), name_of(path))


def unwrapped(document: Any, name: str) -> Any:
    """The configuration inside a NetworkAttachmentDefinition, with its name if it has none; any other as it is."""
    if not isinstance(document, dict) or document.get("kind") != "NetworkAttachmentDefinition":
        return document
    spec, metadata = document.get("spec"), document.get("metadata")
    text = spec.get("config") if isinstance(spec, dict) else None
    if not isinstance(text, str):
        raise click.UsageError(f"{name} is a NetworkAttachmentDefinition without spec.config")
    try:
        conf = json.loads(text)
    except ValueError as error:
        raise click.UsageError(f"spec.config of {name} is no JSON: {error}") from None
    own = metadata.get("name") if isinstance(metadata, dict) else None
    return {**conf, "name": own} if isinstance(conf, dict) and own and not conf.get("name") else conf


def one_plugin(conf: Any, name: str) -> Any:
    """Of a list of plugins the part that asks for addresses, with the name and the version of the list."""
    if not isinstance(conf, dict) or not isinstance(conf.get("plugins"), list):
        return conf
    shared = {key: conf[key] for key in ("name", "cniVersion") if key in conf}
    for kind in IPAM_TYPES:
        found = next((plugin for plugin in conf["plugins"] if _ipam_type(plugin) == kind), None)
        if found is not None:
            return {**found, **shared}
    raise click.UsageError(f"{name} is a list of plugins, and none has {', '.join(IPAM_TYPES)} as its IPAM plugin")


def _ipam_type(plugin: Any) -> Any:
    ipam = plugin.get("ipam") if isinstance(plugin, dict) else None
    return ipam.get("type") if isinstance(ipam, dict) else None
