"""Owns putting the server together."""

from ipamd.serving.own import Ends
from ipamd.serving.running import running

__all__ = ["Ends", "running"]
