"""What the dry run says of in-sync replicas: from data, without a cluster."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rehome.domain.kafka import (
    Broker,
    ClusterDescription,
    Partial,
    PartitionState,
    TopicDescription,
)
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.replica_checks import isr_findings
from rehome.execution.dry_run.typed_finding import FoundKind
from tests.ledger.small_plans import make_plan, move


@pytest.mark.parametrize(
    ("now", "target", "kind"),
    [
        ((1, 2), (1,), FoundKind.TOO_FEW_REPLICAS),
        ((1, 2, 4), (1,), FoundKind.TOO_FEW_REPLICAS),
        ((1,), (2,), FoundKind.ALREADY_TOO_FEW),  # a drain makes it no worse
        ((1, 2), (3, 2), FoundKind.ALREADY_TOO_FEW),
        ((1,), (1, 2), FoundKind.BELOW_MINIMUM),  # the plan makes it better
    ],
)
def test_fewer_replicas_than_the_minimum_are_refused_only_where_the_plan_takes_them_away(
    now: tuple[int, ...], target: tuple[int, ...], kind: FoundKind
) -> None:
    brokers = {n: Broker(n, "localhost", 9092, None) for n in (1, 2, 3, 4)}
    topic = TopicDescription("t", "id", False, {0: PartitionState(1, now, frozenset(now))})
    state = ClusterState(
        taken_at=datetime(2030, 1, 1, tzinfo=UTC),
        cluster=ClusterDescription("c1", 1, brokers, None),
        topics={"t": topic},
        ongoing={},
        log_dirs=Partial([], {}),
        missing_rights=(),
        min_isr={"t": 3 if len(now) != 1 else 2},
        sizes={},
    )
    (found,) = isr_findings(make_plan("p", move("t", 0, now, target)), state)
    assert found.kind is kind
    assert found.isr.replicas == len(now)
    assert found.isr.replicas_in_the_end == len(target)
