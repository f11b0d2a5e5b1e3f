"""Messages that are gone, of partitions of plans that say they are done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from rehome.domain.claims import Placed
from rehome.domain.run.states import PlanState
from world.judge.placement import Partitions
from world.judge.plan_seen import PlanSeen
from world.judge.statements import Statement
from world.kafka.metadata import PartitionKey


def lost_unsaid(
    partitions: Partitions,
    plan: PlanSeen,
    statements: Iterable[Statement],
    lost: Mapping[PartitionKey, float],
    wiped: Mapping[PartitionKey, float],
) -> Iterator[tuple[str, float]]:
    """Names of partitions, and how many messages are gone of which a done plan does not say so.

    It says what it has read: nothing that was wiped after its proof began, or after its run.

    :param lost: messages that are gone at the end, by partition.
    :param wiped: when a broker last came back without its replica, in seconds.
    """
    if plan.record is None or plan.record.state is not PlanState.DONE:
        return
    proven = [
        said.since
        for said in statements
        if said.plan_id == plan.plan_id and any(isinstance(claim, Placed) for claim in said.claims)
    ]
    over = max(proven or [span.until for span in plan.able], default=float("inf"))
    for key in (plan.targets.keys() & lost.keys()) - plan.unread:
        name = f"{partitions.names[key.topic_id]}-{key.number}"
        if name not in plan.said_lost and over >= wiped.get(key, 0.0):
            yield name, lost[key]
