"""Owns showing the figures of all layers as metrics: the only place that knows both."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace

from ipamd import __version__
from ipamd.consensus.node import RaftNode
from ipamd.metrics import ServerMetrics, Watched
from ipamd.service import Services
from ipamd.service.comparing import Comparing
from ipamd.service.routing import RoutedLog
from ipamd.serving.own import Own


def watched(
    own: Own,
    node: RaftNode,
    services: Services,
    *,
    routed: RoutedLog,
    comparing: Comparing | None,
    stack: AsyncExitStack,
) -> Services:
    """The use cases with their metrics; `stack` ends what is under way for those."""
    tls = own.tls
    metrics = ServerMetrics(
        services,
        Watched(
            node,
            __version__,
            is_halted=lambda: routed.halted is not None,
            differs=lambda: comparing is not None and comparing.differs,
            certificate_ends_s=lambda: None if tls is None else tls.read.ends_s,
        ),
    )
    stack.push_async_callback(metrics.stop)
    return replace(services, exposition=metrics)
