"""A dry run of a few moves on real brokers, and all that a dry run must not change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.snapshot.model import Snapshot
from rehome.cluster.snapshot.take import take_snapshot
from rehome.domain.actions import Action
from rehome.domain.configs import ConfigResource
from rehome.domain.plan.move import Move
from rehome.domain.request.request import ReassignmentRequest
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.dry_run.dry_run import DryRunResult, Finding, dry_run
from rehome.execution.dry_run.typed_finding import VERSIONS_CHECK
from rehome.settings import Settings
from tests.ledger.small_plans import make_plan

REQUEST = ReassignmentRequest(Action.REASSIGN)
PLENTY = 1_000_000_000


def snapshot_of(gateway: ClusterGateway) -> Snapshot:
    return take_snapshot(gateway, datetime.now(UTC))


def check(gateway: ClusterGateway, *moves: Move, **options: Any) -> DryRunResult:
    """Dry-run a plan of these moves; options: snapshot, request, settings, and dry_run's own."""
    snapshot = options.pop("snapshot", None) or snapshot_of(gateway)
    plan = make_plan("dry", *moves, cluster_id=snapshot.cluster_id)
    request = options.pop("request", REQUEST)
    # The log dirs of these clusters lie on a disk that other things fill as well.
    settings = options.pop("settings", Settings(min_free_disk_fraction=0.0))
    own = cast(OwnCluster, gateway)
    rate = options.pop("rate_bytes_per_s", PLENTY)
    return dry_run(plan, request, snapshot, own, settings, rate_bytes_per_s=rate, **options)


def found(result: DryRunResult, check: str) -> list[Finding]:
    return [item for item in result.findings if item.check == check]


def beside_versions(result: DryRunResult) -> list[Finding]:
    """All that was found, but what the brokers' version lacks in any case."""
    return [item for item in result.findings if item.check != VERSIONS_CHECK]


@dataclass(frozen=True)
class Everything:
    """Configuration and placement of a cluster, without what producers change."""

    topics: dict[str, Any]
    ongoing: dict[Any, Any]
    configs: dict[Any, Any]
    placed: set[Any]


def everything(gateway: ClusterGateway) -> Everything:
    """Every assignment, config and place of a replica."""
    topics = gateway.describe_topics()
    brokers = gateway.describe_cluster().brokers
    resources = [
        *map(ConfigResource.topic, sorted(topics)),
        *map(ConfigResource.broker, sorted(brokers)),
        ConfigResource.cluster_default(),
    ]
    log_dirs = gateway.describe_log_dirs().value
    return Everything(
        topics,
        gateway.list_reassignments(),
        gateway.describe_configs(resources),
        {(d.broker, d.path, tp, r.is_future) for d in log_dirs for tp, r in d.replicas.items()},
    )
