"""Owns the agent of a node without a server: its calls are carried out by a cluster elsewhere, its DELs never wait.

It knows no HTTP: what carries its requests, and the socket that its callers come through, are given to it.
"""

from ipamd.agent.agent import Agent
from ipamd.agent.servers import Servers
from ipamd.agent.upstream import Upstream

__all__ = ["Agent", "Servers", "Upstream"]
