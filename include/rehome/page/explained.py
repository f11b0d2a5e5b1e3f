"""Why a plan moves what it moves, by its files and its snapshot: one plan at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from threading import Lock

from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.request.parse_request import parse_request
from rehome.domain.resources import RESOURCE_NAMES
from rehome.domain.text import join_names
from rehome.errors import InvalidRequestError
from rehome.load_history.known_rates import Demands, LoadHistory
from rehome.planning.explain.explainer import Explainer
from rehome.planning.explain.text import broker_text, partition_text
from rehome.warehouse import PlanDirectory, Warehouse, read_snapshot

KEPT_EXPLAINERS = 2
"""Each holds a whole snapshot."""
_MAKING = Lock()


def explanations(
    plan_dir: str, demands: Demands | None, partitions: Sequence[str], brokers: Sequence[BrokerId]
) -> list[str]:
    """A text for each partition and each broker, and one for what could not be judged.

    :param demands: of the load history that traffic is judged by; None = without one.
    :param partitions: each as topic-number.
    :raises InvalidRequestError: one of them is not there.
    :raises RehomeError: the plan's files, or its snapshot, cannot be read.
    """
    partition_ids = [partition_named(name) for name in partitions]
    with _MAKING:
        explainer = _explainer(plan_dir, demands)
    texts = [partition_text(explainer.partition(each)) for each in partition_ids]
    texts += [broker_text(explainer.broker(broker)) for broker in brokers]
    if unmeasured := explainer.unmeasured_resources():
        names = join_names([RESOURCE_NAMES[resource] for resource in unmeasured])
        texts.append(f"Not judged, for the snapshot does not have them per partition: {names}.")
    return texts


@lru_cache(maxsize=KEPT_EXPLAINERS)
def _explainer(plan_dir: str, demands: Demands | None) -> Explainer:
    directory = PlanDirectory(plan_dir)
    plan = directory.load()
    # The window may have closed meanwhile: it plays no part in where replicas go.
    request = parse_request(directory.read_json("request.json"), recorded=True)
    warehouse = directory.uri.rsplit("/", 2)[0]
    snapshot = read_snapshot(f"{warehouse}/snapshots/{plan.summary.snapshot}")
    if demands is not None:
        snapshot = LoadHistory.read(Warehouse(warehouse), snapshot, demands).with_rates(snapshot)
    return Explainer(snapshot, request, plan)


def partition_named(text: str) -> TopicPartition:
    """A partition as people write it.

    :raises InvalidRequestError: it is none.
    """
    topic, _, number = text.rpartition("-")
    if not topic or not number.isdecimal() or not number.isascii():
        raise InvalidRequestError([f"{text!r} is no partition: write topic-number."])
    return TopicPartition(topic, int(number))
