"""New partitions: everything that could refuse them is asked first; then made, and proved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.port import ClusterPort
from rehome.cluster.interface.rights import GRANT, LACKING, Role, missing_rights
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerError, TopicDescription, TopicPartition
from rehome.domain.request.partition_counts import AddedPartitions
from rehome.domain.run.findings import Finding, Severity
from rehome.domain.text import count_text
from rehome.errors import PlanConflictError, RehomeError
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.access.progress_timeout import ProgressTimeout, pause
from rehome.execution.dry_run.throttle_checks import partition_findings
from rehome.execution.throttle.keys import own_value

SHOWN_TIMEOUT_S = 15.0
_SHOWN_POLL_S = 0.1
_CHECK = "partitions"
_PLACE_AGAIN = "Trigger a new run: the partitions are placed within what the cluster has now."


def check(
    plan: AddedPartitions, cluster: OwnCluster, *, active_plan: str | None = None
) -> list[Finding]:
    """What would refuse or spoil the new partitions; changes nothing.

    The controller validates counts and assignments itself (CreatePartitions, validate_only).

    :param active_plan: id of the plan that moves partitions of this cluster now.
    :raises ClusterError: the cluster could not be read.
    """
    lacking = missing_rights(cluster, plan.totals, Role.ADD_PARTITIONS)
    if lacking:
        return [_error(right, LACKING, GRANT) for right in lacking]
    findings = [*_drift(plan, cluster), *_brokers(plan, cluster)]
    if not findings:
        more = {topic: n for topic, n in plan.totals.items() if topic not in plan.new_topics}
        rows = {topic: plan.of_topic(topic) for topic in more}
        findings += partition_findings(cluster, more, rows)
        findings += _new_topics(plan, cluster)
    if active_plan is not None:
        what = "moves partitions now, and does not know of the new ones"
        then = "Exclude the brokers that it empties."
        findings.append(Finding(Severity.WARNING, _CHECK, f"plan {active_plan}", what, then))
    return findings


def broken_findings(broken: Sequence[str]) -> Iterator[Finding]:
    """Limits of now that the placement breaks.

    :param broken: a sentence for each.
    """
    for text in broken:
        yield _error("caps and broker sets", text.rstrip("."), _PLACE_AGAIN)


def rack_findings(uneven: Sequence[TopicPartition]) -> Iterator[Finding]:
    """New partitions whose replicas a person has chosen against the racks."""
    for partition in uneven:
        yield Finding(
            Severity.WARNING,
            _CHECK,
            str(partition),
            "its replicas, as assignments has them, are not spread over racks as evenly as they "
            "could be",
            "Choose other brokers, or leave its topic out of assignments: then they are placed.",
        )


def refuse_broken(broken: Sequence[str]) -> None:
    """Let only partitions be created that keep the limits of now.

    :param broken: a sentence for each limit that they break.
    :raises PlanConflictError: they break some.
    """
    if broken:
        raise PlanConflictError(
            "The new partitions were placed by an earlier state of the cluster, its caps and its "
            "broker sets. By those of now the placement breaks limits: " + " ".join(broken),
            state_left="No partition was created.",
            next_step=_PLACE_AGAIN,
        )


def create(plan: AddedPartitions, cluster: OwnCluster) -> tuple[TopicPartition, ...]:
    """Create the partitions, and prove by reading that they are where the plan says.

    A retry creates nothing twice: what is there already as planned is left out.

    :returns: the partitions that were created by this call.
    :raises PlanConflictError: a topic has changed since the plan was made.
    :raises RehomeError: a topic was refused; says which ones were not.
    """
    topics = cluster.describe_topics(plan.totals)
    counts = {topic: n for topic, n in plan.totals.items() if not _is_there(plan, topic, topics)}
    drifted = [str(item) for item in _drift(plan, cluster) if item.subject in counts]
    if drifted:
        raise PlanConflictError(
            " ".join(drifted),
            state_left="No partition was created by this step.",
            next_step="Trigger a new run: it places the partitions by the cluster as it is now.",
        )
    more = {topic: n for topic, n in counts.items() if topic not in plan.new_topics}
    new = {topic: plan.of_topic(topic) for topic in counts if topic in plan.new_topics}
    verdicts = {
        **cluster.create_partitions(more, {topic: plan.of_topic(topic) for topic in more}),
        **cluster.create_topics(new, plan.new_topics),
    }
    refusals = {topic: error for topic, error in verdicts.items() if error is not None}
    if refusals:
        made = sorted(set(counts) - set(refusals))
        raise RehomeError(
            "The brokers refused to create: "
            + "; ".join(f"{topic}: {error}" for topic, error in sorted(refusals.items())),
            state_left=f"Created, and staying: {', '.join(made)}."
            if made
            else "Nothing was created.",
            next_step="Correct what the brokers name, then clear this task: it creates only what "
            "is missing. If the request itself has to change, trigger a new run.",
        )
    _prove(plan, cluster)
    return tuple(partition for partition in sorted(plan.assignments) if partition.topic in counts)


def _prove(plan: AddedPartitions, cluster: ClusterPort) -> None:
    missing, timeout = list(plan.totals), ProgressTimeout(SHOWN_TIMEOUT_S)
    while True:
        topics = cluster.describe_topics(missing)
        configured = _configured_topics(plan, cluster)
        left = [
            topic
            for topic in missing
            if not _is_there(plan, topic, topics) or topic not in configured
        ]
        timeout.note_answer(progress=len(left) < len(missing))
        missing = left
        if not missing:
            return
        if timeout.exhausted:
            raise RehomeError(
                f"The new partitions of {', '.join(missing)} do not read back as created",
                state_left="The controller had accepted them.",
                next_step="Look at the topics. Clear this task: it creates only what is missing, "
                "and says "
                "what does not read back.",
            )
        pause(_SHOWN_POLL_S)


def _configured_topics(plan: AddedPartitions, cluster: ClusterPort) -> set[str]:
    """Topics whose configs read back as they were asked for: also those that exist already."""
    configs_by_topic = {
        ConfigResource.topic(topic): configs for topic, configs in plan.new_topics.items()
    }
    answers = (
        cluster.describe_configs(list(configs_by_topic)) if any(configs_by_topic.values()) else {}
    )
    good = {*plan.totals}
    for resource, configs in configs_by_topic.items():
        found_configs = answers.get(resource, {})
        if configs and (
            isinstance(found_configs, BrokerError)
            or any(
                own_value(resource, found_configs.get(key)) != value
                for key, value in configs.items()
            )
        ):
            good.discard(resource.name)
    return good


def _new_topics(plan: AddedPartitions, cluster: ClusterPort) -> Iterator[Finding]:
    """What the controller would refuse of new topics, by CreateTopics' own validate_only."""
    rows = {topic: plan.of_topic(topic) for topic in plan.new_topics}
    for topic, error in cluster.create_topics(rows, plan.new_topics, validate_only=True).items():
        if error is not None:
            what = f"would not be created: {error.name}: {error.message}"
            yield Finding(
                Severity.ERROR,
                _CHECK,
                topic,
                what,
                "Correct the new topic in the request.",
                error.code,
            )


def _is_there(plan: AddedPartitions, topic: str, topics: Mapping[str, TopicDescription]) -> bool:
    """Whether the topic's new partitions are there, with the planned replicas, and led."""
    partitions = topics[topic].partitions
    return len(partitions) == plan.totals[topic] and all(
        partitions[tp.partition].replicas == row and partitions[tp.partition].leader is not None
        for tp, row in plan.assignments.items()
        if tp.topic == topic
    )


def _drift(plan: AddedPartitions, cluster: ClusterPort) -> Iterator[Finding]:
    for name, topic in sorted(cluster.describe_topics(plan.totals).items()):
        now, then = len(topic.partitions), plan.existing[name]
        if name in plan.new_topics:
            if topic.error is None:
                what = f"exists by now, with {count_text(now, 'partition')}"
                yield _error(name, what, "Trigger a new run without it.")
            elif topic.error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                yield _error(name, f"cannot be read: {topic.error}", "See its name and rights.")
        elif topic.error is not None:
            yield _error(name, f"cannot be read: {topic.error}", "It is gone or hidden.")
        elif now != then:
            what = f"has {count_text(now, 'partition')}, and had {then} when this was planned"
            yield _error(name, what, "Trigger a new run.")


def _brokers(plan: AddedPartitions, cluster: ClusterPort) -> Iterator[Finding]:
    """The controller takes a dead broker for a replica, as long as it is registered."""
    live = cluster.describe_cluster().brokers
    for broker in sorted({broker for row in plan.assignments.values() for broker in row}):
        if broker not in live:
            what = "is not alive, and is to hold new replicas"
            yield _error(f"broker {broker}", what, "Trigger a new run: it is left out then.")


def _error(subject: str, message: str, remedy: str) -> Finding:
    return Finding(Severity.ERROR, _CHECK, subject, message, remedy)
