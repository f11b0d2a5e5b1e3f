"""The pace of a plan in words: a rate, or why there is none."""

from __future__ import annotations

from rehome.account.known import Fact, Known
from rehome.account.pace import PlanPace
from rehome.account.words.unknown_words import WHY_UNKNOWN
from rehome.domain.kafka import TopicPartition

UNTIL_SILENT = "what came until a broker did not answer the newest poll"
"""Of the rate of a partition that is not known up to the newest poll."""


def rate_of(pace: Fact[PlanPace]) -> tuple[float | None, str]:
    """Bytes per second of the whole plan; or None, and why."""
    if isinstance(pace, Known):
        return pace.value.total, ""
    return None, WHY_UNKNOWN[pace.why]


def rate_of_partition(
    pace: Fact[PlanPace], partition: TopicPartition, *, in_flight: bool = True
) -> tuple[float | None, str]:
    """Bytes per second of a partition, and what is to be known of them; or None, and why. Of one
    whose move has ended within the time that the plan's pace is measured over, what it has copied
    until then, and likewise of one that a broker is silent about: so the rows of a plan add up to
    its head.
    """
    if not in_flight:
        ended = pace.value.partitions.get(partition) if isinstance(pace, Known) else None
        return (ended, "") if ended else (None, "it is not being copied")
    if not isinstance(pace, Known):
        return None, WHY_UNKNOWN[pace.why]
    found = pace.value.of_partition(partition)
    if not isinstance(found, float):
        return None, WHY_UNKNOWN[found]
    return found, UNTIL_SILENT if partition in pace.value.silent else ""
