"""Bands of topics: what is computed once for alike topics is what each of them has by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.clusters import CASES, build
from benchmarks.planning.plan import request_of
from rehome.domain.array_types import NONE, Mask
from rehome.planning.model.layout import Layout
from rehome.planning.model.topic_bands import TopicBands, topic_bands
from rehome.planning.result.outcome import tree_of


def test_alike_topics_have_the_bands_that_each_has_by_itself() -> None:
    instance = build(next(case for case in CASES if case.name == "uneven"), 900, 12)
    topic_of, rows = instance.arrays.topic_of, instance.arrays.rows.copy()
    rows[topic_of % 3 == 0, 2] = NONE  # some topics have two replicas of each partition
    arrays = replace(instance.arrays, rows=rows)
    every = np.ones(12, bool)
    tree = tree_of(arrays, every, request_of("default"))

    def bands(partitions: Mask) -> TopicBands:
        found = topic_bands(
            Layout(arrays),
            tree,
            partitions=partitions,
            brokers=every,
            capacity=instance.capacity[1],
            tolerance=0.1,
        )
        assert found is not None
        return found

    together = bands(np.ones(len(rows), bool))
    kinds = {(*of_topic.tolist(),) for of_topic in together.high[:-1]}
    assert 2 < len(kinds) < len(together.topics) == len(arrays.topics)
    for number, topic in enumerate(together.topics.tolist()):
        alone = bands(topic_of == topic)
        for name in ("low", "high", "led_low", "led_high", "fair"):
            assert (getattr(together, name)[number] == getattr(alone, name)[0]).all()
