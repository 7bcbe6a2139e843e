"""Owns the numbers that a monitoring system scrapes: what they are called, and where they come from.

Nothing is counted here. Each layer keeps plain figures of its own work; they are read when somebody scrapes.
"""

from ipamd.metrics.agent import AgentMetrics
from ipamd.metrics.page import page
from ipamd.metrics.server import ServerMetrics, Watched
from ipamd.metrics.table import TABLE, Metric

__all__ = ["TABLE", "AgentMetrics", "Metric", "ServerMetrics", "Watched", "page"]
