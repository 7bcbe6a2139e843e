"""Owns putting the use cases together on top of the member: what callers ask for, and what runs by itself."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace

from ipamd import system
from ipamd.api.handlers.cni import deliver
from ipamd.consensus.node import RaftNode
from ipamd.service import Services
from ipamd.service.clocks import ClockWatch
from ipamd.service.comparing import Comparing
from ipamd.service.heartbeats import Heartbeats
from ipamd.service.ownnode import OwnNode
from ipamd.service.ports import Facts
from ipamd.service.proposer import Proposer
from ipamd.service.reporting import Reporting
from ipamd.service.routing import RoutedLog
from ipamd.service.spooling import Spooling
from ipamd.serving.backups import backups_of
from ipamd.serving.member import inside_of
from ipamd.serving.nodename import keeper_of_node_name
from ipamd.serving.own import Ends, Own
from ipamd.serving.watched import watched
from ipamd.settings import Config
from ipamd.spool import DirectorySpool


async def serve_use_cases(own: Own, node: RaftNode, ends: Ends, stack: AsyncExitStack) -> Services:
    """The use cases, started; `stack` stops them."""
    config, clock = own.config, system.SystemClock()
    heartbeats = Heartbeats(clock, config.heartbeat_every_s)
    inside = inside_of(own, node, heartbeats)
    routed = RoutedLog(node, own.peers, name=config.member_name, members=lambda: node.members, clock=clock)
    spool = DirectorySpool(config.spool_dir)
    stack.push_async_callback(spool.close)
    spooling = Spooling(
        spool,
        lambda call, deadline_s: deliver(services, call, deadline_s),
        clock=clock,
        now=system.call_start,
        is_on=config.del_policy == "spool",
        is_alone=lambda: len(node.members) == 1,
    )
    services = Services.assemble(
        routed,
        own.state,
        clock=clock,
        random=system.random_bytes,
        namespaces=system.Namespaces(),
        texts=system.read_text,
        facts=Facts(config.member_name, config.node_name, config.cluster, keeper_of_node_name(config.data_dir)),
        peers=own.peers,
        inside=inside,
        spooling=spooling,
        heartbeats=heartbeats,
        records=system.CniRecords(config.cni_cache_dir),
    )
    stack.push_async_callback(services.stop)
    await services.start()
    stack.push_async_callback(spooling.stop)
    spooling.start()
    comparing = None
    if inside is not None:
        comparing = Comparing(
            routed,
            Proposer(node, clock, system.random_bytes),
            inside=inside,
            peers=own.peers,
            clock=clock,
            fatal=ends.fatal,
            every_s=config.digest_every_s,
        )
        stack.push_async_callback(comparing.stop)
        comparing.start()
        clocks = ClockWatch(inside, own.peers, clock, lambda is_right: node.judge_wall(is_right=is_right))
        stack.push_async_callback(clocks.stop)
        clocks.start()
    services = replace(services, backups=backups_of(own, services))
    return watched(own, node, services, routed=routed, comparing=comparing, stack=stack)


def reporting_of(config: Config, services: Services) -> Reporting:
    """What tells the cluster of this host's own pods; started once the server serves."""
    spooling = services.spooling
    return Reporting(
        OwnNode(services.nodes, services.reader, services.facts),
        services.sandboxes,
        services.clock,
        boot_id=system.boot_id(),
        spooled=lambda: 0 if spooling is None else spooling.length,
        in_order=Reporting.no_order if spooling is None else spooling.clear,
        heartbeat_every_s=config.heartbeat_every_s,
        report_every_s=config.report_every_s,
    )
