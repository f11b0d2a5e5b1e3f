"""Why a plan moves a partition, or gives a broker what it gets: for programs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import JSONResponse
from pydantic import Field

from rehome.domain.kafka_limits import LARGEST_BROKER_ID
from rehome.errors import InvalidRequestError, first_problems
from rehome.load_history.known_rates import Demands
from rehome.page.explained import explanations
from rehome.ui import clusters
from rehome.ui.access import UserDep
from rehome.ui.routes.shared import plans, view_for

router = APIRouter()
MOST_EXPLAINED = 20
"""PartitionNames, and brokers, of one request."""

PartitionNames = Annotated[list[str] | None, Query(max_length=MOST_EXPLAINED)]
BrokerNumbers = Annotated[
    list[Annotated[int, Field(ge=0, le=LARGEST_BROKER_ID)]] | None,
    Query(max_length=MOST_EXPLAINED),
]


@router.get("/plans/{plan_id}/explanations")
def explain(
    user: UserDep, plan_id: str, partition: PartitionNames = None, broker: BrokerNumbers = None
) -> JSONResponse:
    """Why partitions and brokers of a plan get what they get, and nothing else, as JSON."""
    record = view_for(plan_id, user).record
    if not partition and not broker:
        raise HTTPException(422, "Name a partition (partition=topic-number), or a broker.")
    demands = Demands(*clusters.history_asked(record.cluster_id, plans.ledger))
    try:
        texts = explanations(record.plan_dir, demands, partition or (), broker or ())
    except InvalidRequestError as error:
        raise HTTPException(422, first_problems(error.problems)) from None
    return JSONResponse({"plan_id": record.plan_id, "texts": texts})
