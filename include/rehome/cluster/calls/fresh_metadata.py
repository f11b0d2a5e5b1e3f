"""Topics as a broker shows them that is known to be up to date: asked of the controller first.

A broker that is cut off from the controller goes on answering Metadata, for as long as nothing ends
it, from what it knew when it was cut off. Metadata (any version) does not say how old it is. The
controller does: DescribeQuorum (KIP-595) says how far each broker has read the metadata log.
"""

from __future__ import annotations

import random
import time
from collections.abc import Collection
from functools import partial
from typing import Any

from rehome.cluster.clients.clients import Clients, refuse
from rehome.cluster.clients.wire import metadata_request
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import BrokersDisagreeError, ClusterError
from rehome.cluster.interface.rights import Call
from rehome.cluster.messages import admin as messages
from rehome.cluster.messages.metadata import read_topics
from rehome.domain.kafka import TopicDescription

ATTEMPTS, _PAUSE_S = 20, 0.1
"""Brokers fetch the metadata log at least every 500 ms. What they fetched they show milliseconds
later: the protocol does not say when, so an answer may be that much older than promised.
"""
BROKERS_ASKED = 2


def current_topics(clients: Clients, names: Collection[str] | None) -> dict[str, TopicDescription]:
    """These topics, by name, no older than what the controller had committed at the call.

    Where brokers know no DescribeQuorum (ZooKeeper, before 3.3), all of them are asked, and a topic
    on which they do not agree is left out: on its replicas, or on who leads them. ISRs may differ,
    for they change all the time: the controller itself knows them when it is asked to act.

    :param names: None = all that this principal may describe.
    :raises BrokersDisagreeError: of all topics, brokers do not agree on which there are, or on one.
    :raises ClusterError: the controller does not answer, or no broker catches up with it.
    """
    committed: int | None = None
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_S)
        quorum = quorum_of_controllers(clients)
        if quorum is None:
            return _agreed_on(clients, names)
        committed = quorum.committed if committed is None else committed
        ready = [broker for broker, end in quorum.read_to.items() if end >= committed]
        answers = topics_at(clients, names, random.sample(ready, min(BROKERS_ASKED, len(ready))))
        if answers:
            return answers[0]
    raise ClusterError(
        "No broker has read the metadata log as far as the controller has written it, so what they "
        "say of topics may be out of date",
        state_left="What is in flight goes on.",
        next_step="Look at the brokers' connections to the controllers. The next poll of a running "
        "plan reads them again; clear any other task that has failed, with what comes after it.",
    )


def quorum_of_controllers(clients: Clients) -> messages.Quorum | None:
    """What the controller knows of the brokers' metadata; None where there is no such request."""
    request = messages.describe_quorum_request()
    try:
        answer = clients.ask_controller(Call.DESCRIBE_QUORUM, request)
    except ClusterError as error:
        if error.error is not None and error.error.code == ErrorCode.UNSUPPORTED_VERSION:
            return None
        raise
    code = messages.quorum_error(answer)
    refuse(Call.DESCRIBE_QUORUM, code)
    return messages.read_quorum(answer)


def topics_at(
    clients: Clients, names: Collection[str] | None, brokers: Collection[int]
) -> list[dict[str, TopicDescription]]:
    """The topics as each of these brokers shows them that answers."""
    if not brokers:
        return []
    request: Any = metadata_request(None if names is None else sorted(names))
    answers, _ = clients.ask(
        Call.DESCRIBE_TOPICS,
        partial(clients.reads.ask_each, dict.fromkeys(brokers, request)),
    )
    return [read_topics(answer) for answer in answers.values()]


def _agreed_on(clients: Clients, names: Collection[str] | None) -> dict[str, TopicDescription]:
    alive = clients.ask(Call.DESCRIBE_CLUSTER, clients.reads.metadata).brokers
    answers = topics_at(clients, names, [broker.node_id for broker in alive])
    if not answers:
        raise ClusterError(
            "No broker has answered with its topics",
            next_step="Look at the brokers' load and connections. The next poll of a running plan "
            "asks them again; clear any other task that has failed, with what comes after it.",
        )
    first, *others = answers
    agreed = {
        name: topic
        for name, topic in first.items()
        if all(_alike(topic, other.get(name)) for other in others)
    }
    if names is None and any(answer.keys() != agreed.keys() for answer in answers):
        raise BrokersDisagreeError(
            "The brokers do not agree on the cluster's topics",
            next_step="Look at the brokers' connections to the controller, then try again.",
        )
    return agreed


def _alike(one: TopicDescription, other: TopicDescription | None) -> bool:
    if other is None or one.topic_id != other.topic_id or one.error != other.error:
        return False
    return _placement_of(one) == _placement_of(other)


def _placement_of(topic: TopicDescription) -> dict[int, tuple[int | None, tuple[int, ...]]]:
    """Leader and replicas of each partition."""
    return {number: (state.leader, state.replicas) for number, state in topic.partitions.items()}
