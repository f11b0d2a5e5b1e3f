"""Topics as a broker shows them that is known to be up to date, with time for brokers to agree."""

from __future__ import annotations

from collections.abc import Collection

from rehome.cluster.interface.errors import BrokersDisagreeError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.kafka import TopicDescription
from rehome.execution.access.progress_timeout import ProgressTimeout, pause

DISAGREE = "the brokers do not agree on its replicas or leaders"
AGREED_TIMEOUT_S = 10.0
AGREED_POLL_S = 0.1


def agreed_topics(
    cluster: ClusterPort, names: Collection[str] | None
) -> dict[str, TopicDescription]:
    """These topics, by name, no older than what the controller had committed at the call.

    Where brokers have no metadata quorum, they differ for a moment after each change: what they do
    not agree on is asked again. With a quorum the first answer has every topic.

    :param names: None = all that this principal may describe.
    :returns: without the topics on which they do not agree in the end: of those it is not known
        how they are.
    :raises BrokersDisagreeError: all were asked for, and there is such a topic.
    :raises ClusterError: no broker is known to be up to date.
    """
    if names is None:
        return _agreed_on_all(cluster)
    topics: dict[str, TopicDescription] = {}
    timeout = ProgressTimeout(AGREED_TIMEOUT_S)
    while left := set(names) - topics.keys():
        answer = cluster.current_topics(left)
        topics |= answer
        timeout.note_answer(progress=bool(answer))
        if answer.keys() >= left or timeout.exhausted:
            break
        pause(AGREED_POLL_S)
    return topics


def _agreed_on_all(cluster: ClusterPort) -> dict[str, TopicDescription]:
    timeout = ProgressTimeout(AGREED_TIMEOUT_S)
    while True:
        try:
            return cluster.current_topics(None)
        except BrokersDisagreeError:
            timeout.note_answer(progress=False)
            if timeout.exhausted:
                raise
        pause(AGREED_POLL_S)
