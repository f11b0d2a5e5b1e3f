"""The parameters of `foreign_reassignments`, each defined once."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rehome.domain.kafka import BrokerId, Replicas, TopicPartition
from rehome.domain.reassignment_file import parse_reassignment
from rehome.domain.request.fields import types
from rehome.domain.request.fields.shared import WHAT, Cluster
from rehome.domain.request.param_types import slow_rates
from rehome.domain.request.validation import read_params
from rehome.errors import InvalidRequestError
from rehome.field_descriptions import Unit


class ForeignAction(enum.StrEnum):
    """What may be asked of reassignments that are in flight."""

    DESCRIBE = "describe"
    FOLLOW = "follow"
    CANCEL = "cancel"
    ADOPT = "adopt"

    @property
    def changes_cluster(self) -> bool:
        """Whether a person has to approve it."""
        return self in (ForeignAction.CANCEL, ForeignAction.ADOPT)


_TITLES: Mapping[ForeignAction, str] = {
    ForeignAction.DESCRIBE: "Describe: what is in flight, once",
    ForeignAction.FOLLOW: "Follow: until all of it has ended",
    ForeignAction.CANCEL: "Cancel what other clients have started",
    ForeignAction.ADOPT: "Adopt what other clients have started, as a plan",
}


class ForeignParams(BaseModel):
    """What a run of `foreign_reassignments` takes, and how forms show it."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    kafka_config_id: Cluster = "kafka_default"
    action: Annotated[
        ForeignAction,
        types.one_of(ForeignAction, _TITLES),
        WHAT,
        Field(title="Action", description="What is asked of reassignments in flight."),
    ] = ForeignAction.DESCRIBE
    topics: Annotated[
        types.TopicNames,
        WHAT,
        Field(
            title="Topics",
            description="Only of these: names or patterns with * and ?, one a line; re: and a "
            "regular expression of the whole name; after a colon partitions. An internal topic "
            "takes part only when its full name is given, or where nothing is.",
            examples=["orders", "logs-*", "orders:3-9", "re:logs-[0-9]+"],
        ),
    ] = ()
    brokers: Annotated[
        types.BrokerIds,
        WHAT,
        Field(
            title="Brokers",
            description="Only those that have a replica on one of these brokers, add one there, or "
            "remove one.",
            examples=["3", "3, 4"],
        ),
    ] = ()
    all_in_flight: Annotated[
        types.YesOrNo,
        WHAT,
        Field(
            title="All of them",
            description="Cancel and adopt need topics, brokers, or this.",
        ),
    ] = False
    reassignment: Annotated[
        types.ReassignmentJson,
        WHAT,
        Field(
            title="Reassignment",
            description="For describe and follow: Kafka's own JSON, as kafka-reassign-partitions "
            "takes it. Its partitions are shown, whether they are in flight or not, against the "
            "replicas that it names.",
            examples=[
                {
                    "version": 1,
                    "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}],
                }
            ],
        ),
    ] = None
    clean_throttles: Annotated[
        types.YesOrNo,
        WHAT,
        Field(
            title="Clean throttles",
            description="For cancel: take away throttles that other clients have set for what is "
            "cancelled, where no reassignment that is left in flight uses them.",
        ),
    ] = False
    throttle: Annotated[
        types.OptionalRate,
        Unit("bytes per second"),
        WHAT,
        Field(
            title="Throttle",
            description="For adopt: bytes per second, for each broker and direction. Nothing "
            "given: the setting auto_throttle_bytes_per_s.",
            examples=[50000000],
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class ForeignRequest:
    """A validated request.

    :param topics, brokers: which reassignments; both empty = all.
    :param file: partition → replicas of Kafka's JSON; None = none was given.
    :param rate_bytes_per_s: for adopt; None = the setting's.
    """

    action: ForeignAction
    topics: tuple[str, ...]
    brokers: tuple[BrokerId, ...]
    file: Mapping[TopicPartition, Replicas] | None
    clean_throttles: bool
    rate_bytes_per_s: int | None


def parse_foreign(params: Mapping[str, Any]) -> ForeignRequest:
    """The raw parameters of a run as a request.

    :raises InvalidRequestError: lists every problem.
    """
    read = read_params(ForeignParams, params)
    values, problems, action = read.values, list(read.problems), read.values.action
    has_action = "action" not in read.failed
    chosen = values.topics or values.brokers
    if has_action and action.changes_cluster:
        if not (chosen or values.all_in_flight or {"topics", "brokers"} & read.failed):
            problems.append(f"Action {action} needs topics, brokers, or all_in_flight.")
        if values.reassignment is not None:
            problems.append(f"Action {action} takes no reassignment: name topics or brokers.")
    if chosen and values.all_in_flight:
        problems.append(
            "all_in_flight is given, and topics or brokers, too: leave one of them out."
        )
    if has_action and values.clean_throttles and action is not ForeignAction.CANCEL:
        problems.append("clean_throttles is for action cancel only.")
    if has_action and values.throttle is not None and action is not ForeignAction.ADOPT:
        problems.append("throttle is for action adopt only.")
    problems += slow_rates({"throttle": values.throttle})
    file = None
    if values.reassignment is not None:
        parsed = parse_reassignment(values.reassignment)
        file = {partition: each.replicas for partition, each in parsed.items()}
    if problems:
        raise InvalidRequestError(problems)
    return ForeignRequest(
        action,
        values.topics,
        values.brokers,
        file,
        values.clean_throttles,
        values.throttle,
    )
