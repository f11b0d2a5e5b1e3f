"""Throttles on a cluster that no plan has set, and cordons of other Rehomes: reported, never
changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerError, ConfigValue
from rehome.execution.throttle.keys import (
    CORDONED,
    LISTS,
    THROTTLE_KEYS,
    own_value,
    split,
)
from rehome.execution.throttle.ownership.marks import NONE_READ, Lists, Marks, Need, read_marks
from rehome.ledger.store import Ledger

_DELETE = "kafka-configs --alter --entity-type brokers --entity-default --delete-config"
SetByPlans = Mapping[tuple[ConfigResource, str], Collection[str]]
"""Resource and key → the items of a list, or the values of a rate, that are Rehome's."""


@dataclass(frozen=True, slots=True)
class ForeignThrottle:
    """A rate, or the items of a list, that another client has set; or another Rehome's cordon.

    :param value: "" = a list that is set, with nothing in it.
    """

    resource: ConfigResource
    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.resource} {self.key}={self.value or '(empty)'}"


@dataclass(frozen=True)
class ForeignThrottles:
    """What another client has set.

    :param idle: nothing is being reassigned, so nothing needs a throttle.
    :param unread: resources whose configuration could not be read, and why.
    :param needs: marks of rates and cordons: of other installations, and of plans of this one that
        owe nothing as far as its ledger knows. How old they are is not known.
    :param lists: marks of items on lists: of other installations, and of plans of this one of which
        its ledger, restored from a backup, does not know what they are.
    :param marks: all that there are.
    """

    throttles: tuple[ForeignThrottle, ...] = ()
    idle: bool = False
    unread: Mapping[ConfigResource, BrokerError] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()
    lists: tuple[Lists, ...] = ()
    marks: Marks = NONE_READ


def foreign_throttles(ledger: Ledger, cluster: ClusterPort) -> ForeignThrottles:
    """Every throttle on the cluster, its live brokers and its topics, less what plans have set.

    Of cordons those are named that another installation has marked: others may be an admin's, who
    means them to last. An empty list, which brokers take for none, is named where a mark says of
    lists that this ledger does not know what is whose on them: a Rehome that takes its items back
    leaves the list empty, until its next call deletes it.

    :raises ClusterError: the cluster cannot be reached at all.
    """
    described = cluster.describe_cluster()
    ours = set_by_plans(ledger, described.cluster_id)
    resources = [
        ConfigResource.cluster_default(),
        *map(ConfigResource.broker, sorted(described.brokers)),
        *map(ConfigResource.topic, sorted(cluster.describe_topics())),
    ]
    throttles: list[ForeignThrottle] = []
    unread: dict[ConfigResource, BrokerError] = {}
    answers = cluster.describe_configs(resources, (*THROTTLE_KEYS, CORDONED))
    for resource, configs in answers.items():
        if not isinstance(configs, BrokerError):
            throttles += _foreign(resource, configs, ours)
        elif configs.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            unread[resource] = configs
    marks = read_marks(cluster, ledger.ledger_id)
    if isinstance(marks, BrokerError):
        marks = NONE_READ
    owing = {e.plan_id for e in ledger.throttles(cluster_id=described.cluster_id, open_only=True)}
    needs = tuple(m for m in marks.needs if m.ledger_id != marks.me or m.plan_id not in owing)
    throttles += _cordons(needs, answers)
    lists = tuple(m for m in marks.lists if m.ledger_id != marks.me or m.plan_id not in owing)
    if lists:
        throttles += _empty_lists(answers, ours)
    return ForeignThrottles(
        tuple(throttles),
        not cluster.list_reassignments(),
        unread,
        needs,
        lists,
        marks,
    )


def mark_lines(foreign: ForeignThrottles) -> Iterator[str]:
    """What marks say that are not this ledger's to take back, and how a person settles it."""
    for need in foreign.needs:
        if need.ledger_id == foreign.marks.me:
            yield (
                f"Plan {need.plan_id} of this installation has marked that it needs "
                f"{need.resource} {need.key}={need.value}, and this ledger does not know of it: it "
                "was probably restored from a backup. The sweep takes it back when nothing is "
                "being reassigned any more"
            )
            continue
        before = foreign.marks.at(need.resource, need.key).before(None)
        yield (
            f"Installation {need.ledger_id} of Rehome has marked that its plan {need.plan_id} "
            f"needs {need.resource} {need.key}={need.value}, since when is not known. Should that "
            f"installation be gone for good: give it the value that others want there "
            f"({before or 'none'}), then delete the mark, {_DELETE} {need.name}"
        )
    for mark in foreign.lists:
        yield (
            f"Installation {mark.ledger_id} of Rehome has marked that its plan {mark.plan_id} has "
            "items on throttle lists, and this ledger does not know which. Should nothing of it be "
            "in flight any more: take them from the lists, delete each list that is empty, then "
            f"delete the mark, {_DELETE} "
            f"{mark.name}"
        )


def set_by_plans(ledger: Ledger, cluster_id: str) -> SetByPlans:
    """What plans have set on a cluster and have not taken back, as far as the ledger knows."""
    ours: dict[tuple[ConfigResource, str], set[str]] = {}
    for entry in ledger.throttles(cluster_id=cluster_id, open_only=True):
        ours.setdefault((entry.resource, entry.key), set()).update(entry.asked_values)
    return ours


def _cordons(
    needs: Collection[Need],
    answers: Mapping[ConfigResource, Mapping[str, ConfigValue] | BrokerError],
) -> Iterator[ForeignThrottle]:
    """Those that are there as these marks say."""
    marked = {(need.resource, need.value) for need in needs if need.key == CORDONED}
    for resource, value in sorted(marked, key=str):
        configs = answers.get(resource)
        if configs is None or isinstance(configs, BrokerError):
            continue
        if own_value(resource, configs.get(CORDONED)) == value:
            yield ForeignThrottle(resource, CORDONED, value)


def _empty_lists(
    answers: Mapping[ConfigResource, Mapping[str, ConfigValue] | BrokerError], ours: SetByPlans
) -> Iterator[ForeignThrottle]:
    """Of topics, without those that a plan of this ledger has to see to."""
    for resource, configs in answers.items():
        if isinstance(configs, BrokerError):
            continue
        for key in LISTS:
            if own_value(resource, configs.get(key)) == "" and (resource, key) not in ours:
                yield ForeignThrottle(resource, key, "")


def _foreign(
    resource: ConfigResource, configs: Mapping[str, ConfigValue], ours: SetByPlans
) -> Iterator[ForeignThrottle]:
    for key in THROTTLE_KEYS:
        items = split(own_value(resource, configs.get(key)))
        left = [item for item in items if item not in ours.get((resource, key), ())]
        if left:
            yield ForeignThrottle(resource, key, ",".join(left))
