"""The model is held to real brokers: random scripts run on both, answers and states are compared.

What a broker does otherwise mends the model, and stands in docs/decisions/044-a-model-of-kafka.md.
"""

from __future__ import annotations

import itertools
import os

import pytest

from include.cluster.gateway import ClusterGateway
from local.kafka.cluster import LocalCluster
from tests.conftest import Topics
from tests.world.kafka.scripts.compare import run
from tests.world.kafka.scripts.generate import Writer
from tests.world.kafka.scripts.sides import RealSide, model_of

STEPS = 12
FEW, MANY = 3, 200
_serial = itertools.count()


def seeds(few: int, many: int) -> list[object]:
    more = [pytest.param(seed, marks=pytest.mark.long) for seed in range(few, many)]
    return [*range(few), *more]


@pytest.mark.parametrize("seed", seeds(FEW, MANY))
def test_a_random_script_ends_alike(
    cluster: LocalCluster, gateway: ClusterGateway, seed: int
) -> None:
    with Topics(cluster) as topics:
        names = [f"{name}-{os.getpid()}-{next(_serial)}" for name in "abc"]
        topics.created += names
        script = Writer(seed, model_of(cluster, seed), names, deadly=False).script(STEPS)
        real = RealSide(cluster, gateway)
        try:
            differing = run(script, model_of(cluster, seed), real, names)
        finally:
            real.forget_configs()
        assert not differing, "\n".join([*differing, *map(repr, script)])
