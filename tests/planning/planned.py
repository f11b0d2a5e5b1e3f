"""Plans of requests on clusters small enough to check by eye."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.infeasible import Infeasible
from rehome.domain.plan.plan import Plan
from rehome.domain.request.parse_request import parse_request
from rehome.errors import InvalidRequestError
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from tests.planning.clusters import Cluster
from tests.planning.stored_clusters import Stored

GB = 10**9
THREE_RACKS = ["/r0", "/r0", "/r1", "/r1", "/r2", "/r2"]
ROWS = [(0, 2, 4), (1, 3, 5), (2, 4, 0), (3, 5, 1), (4, 0, 2), (5, 1, 3)]
T = [TopicPartition("t", number) for number in range(8)]


def plan(
    of: Cluster | Stored,
    *,
    rate: Any = None,
    efficiency: Any = 1.0,
    min_free: Any = 0.0,
    **params: Any,
) -> Plan:
    return make_plan(
        of.snapshot(),
        parse_request(params),
        PlanOptions(
            plan_id="p",
            rate_bytes_per_s=rate,
            throttle_efficiency=efficiency,
            min_free_disk_fraction=min_free,
        ),
    )


def problems(of: Cluster | Stored, **params: Any) -> str:
    with pytest.raises(InvalidRequestError) as refused:
        plan(of, **params)
    return " ".join(refused.value.problems)


def both(first: Cluster, second: Cluster) -> Cluster:
    """Two clusters of the same brokers as one."""
    return replace(
        first,
        replicas={**first.replicas, **second.replicas},
        sizes={**first.sizes, **second.sizes},
        internal=first.internal | second.internal,
    )


def infeasible(made: Plan) -> tuple[Infeasible, ...]:
    return made.summary.infeasible
