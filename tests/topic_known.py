"""Waits until every broker knows a topic that was created, or deleted.

Brokers follow the metadata log each by itself: what one of them shows, another shows later, and a
replica is on its broker's disk later still. A test's next call may go to any of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.clients.wire import NoAnswerError, Wire, metadata_request
from rehome.cluster.connection.settings import Connection
from rehome.cluster.messages import admin as messages
from rehome.cluster.messages.metadata import read_topics
from rehome.domain.kafka import ReplicaId, TopicDescription, TopicPartition

ANSWER_S = 30.0
Assignment = Sequence[Sequence[int]]


def wait_until_known(cluster: LocalCluster, topic: str, assignment: Assignment) -> None:
    """Every broker that runs shows all partitions led and in sync, every replica has its log."""
    numbered = list(enumerate(assignment))
    replicas = [ReplicaId(topic, n, broker) for n, brokers in numbered for broker in brokers]
    requests = messages.list_offsets_requests(replicas, messages.LATEST, int(ANSWER_S * 1000))
    with _wire(cluster) as wire:

        def known() -> bool:
            shown = _shown(wire, cluster, [topic])
            return shown is not None and all(_whole(found[topic], assignment) for found in shown)

        def hosted() -> bool:
            answers = _answers(wire, requests)
            return answers is not None and all(
                isinstance(offset, int)
                for broker, answer in answers.items()
                for offset in messages.read_list_offsets(broker, answer).values()
            )

        wait_until(known, f"every broker to know {topic} and its leaders")
        wait_until(hosted, f"every replica of {topic}")


def wait_until_gone(cluster: LocalCluster, partitions: Collection[TopicPartition]) -> None:
    """No broker that runs shows a topic of these, nor a replica in its log dirs."""
    topics = sorted({partition.topic for partition in partitions})
    request = messages.describe_log_dirs_request(partitions)
    with _wire(cluster) as wire:

        def unknown() -> bool:
            shown = _shown(wire, cluster, topics)
            return shown is not None and not any(
                topic.partitions for found in shown for topic in found.values()
            )

        def removed() -> bool:
            answers = _answers(wire, dict.fromkeys(cluster.answering_brokers, request))
            return answers is not None and not any(
                log_dir.replicas
                for broker, answer in answers.items()
                for log_dir in messages.read_log_dirs(broker, answer)
            )

        wait_until(unknown, f"{topics} to be deleted")
        wait_until(removed, f"the replicas of {topics} to be deleted")


def _whole(topic: TopicDescription, assignment: Assignment) -> bool:
    return len(topic.partitions) == len(assignment) and all(
        state.leader in state.replicas and state.isr == set(state.replicas)
        for state in topic.partitions.values()
    )


def _shown(
    wire: Wire, cluster: LocalCluster, topics: list[str]
) -> list[dict[str, TopicDescription]] | None:
    """What each broker shows; None unless all of them do."""
    requests = dict.fromkeys(cluster.answering_brokers, metadata_request(topics))
    answers = _answers(wire, requests)
    return None if answers is None else [read_topics(answer) for answer in answers.values()]


def _answers(wire: Wire, requests: Mapping[int, Any]) -> dict[int, Any] | None:
    try:
        answers, missing = wire.ask_each(requests)
    except NoAnswerError:
        return None
    return None if missing else answers


@contextmanager
def _wire(cluster: LocalCluster) -> Iterator[Wire]:
    wire = Wire(
        Connection.from_settings(cluster.client_settings()),
        client_id="tests",
        request_timeout_s=ANSWER_S,
        connect_timeout_s=ANSWER_S,
    )
    try:
        yield wire
    finally:
        wire.close()
