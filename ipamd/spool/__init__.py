"""Owns the spool: calls that no cluster could take, on the disk until one can."""

from ipamd.spool.spool import DirectorySpool

__all__ = ["DirectorySpool"]
