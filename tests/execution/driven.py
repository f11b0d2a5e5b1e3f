"""Plans driven to their end on real brokers, and the cluster's state then."""

from __future__ import annotations

from typing import Any

from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.kafka import PartitionState
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.execution.advance import Advance, advance
from rehome.ledger.store import Ledger

FAST = Policy(100_000_000, metadata_grace_s=2)
SLOW_RATE = 1_000_000
SLOW = Policy(SLOW_RATE, metadata_grace_s=2)


def run(plan: Plan, ledger: Ledger, gateway: Any, policy: Policy = FAST) -> Advance:
    """Advance until the plan ends or pauses."""
    steps: list[Advance] = []

    def ended() -> bool:
        steps.append(advance(plan, ledger, gateway, policy))
        return steps[-1].finished is not None

    wait_until(ended, f"{plan.plan_id} to end", 240)
    return steps[-1]


def state_of(gateway: ClusterGateway, topic: str, partition: int = 0) -> PartitionState:
    return gateway.describe_topics([topic])[topic].partitions[partition]


def replicas_of(gateway: ClusterGateway, topic: str, partition: int = 0) -> tuple[int, ...]:
    return state_of(gateway, topic, partition).replicas
