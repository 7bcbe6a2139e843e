"""ipamd: a replicated IPAM server for CNI plugins."""

__version__ = "0.1.0"
