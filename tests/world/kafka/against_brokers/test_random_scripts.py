"""The model is held to real brokers: random scripts run on both, answers and states are compared.

What a broker does otherwise mends the model, and stands in docs/decisions/044-a-model-of-kafka.md.
"""

from __future__ import annotations

import itertools
import os

import pytest

from include.cluster.gateway import ClusterGateway
from local.kafka.cluster import LocalCluster
from tests.conftest import Topics, impatient_gateway
from tests.world.kafka.against_brokers.compare import run
from tests.world.kafka.against_brokers.generate import Writer
from tests.world.kafka.against_brokers.sides import RealSide, model_of

STEPS = 12
_serial = itertools.count()


def seeds(few: int, many: int) -> list[object]:
    more = [pytest.param(seed, marks=pytest.mark.long) for seed in range(few, many)]
    return [*range(few), *more]


@pytest.mark.parametrize("seed", seeds(3, 200))
def test_a_random_script_ends_alike(
    cluster: LocalCluster, gateway: ClusterGateway, seed: int
) -> None:
    compare(cluster, gateway, seed, deadly=False)


@pytest.mark.parametrize("seed", seeds(0, 40))
def test_a_script_in_which_brokers_die_ends_alike(mortal: LocalCluster, seed: int) -> None:
    with impatient_gateway(mortal) as gateway:
        compare(mortal, gateway, seed, deadly=True)


def compare(cluster: LocalCluster, gateway: ClusterGateway, seed: int, *, deadly: bool) -> None:
    with Topics(cluster) as topics:
        names = [f"{name}-{os.getpid()}-{next(_serial)}" for name in "abc"]
        topics.created += names
        script = Writer(seed, model_of(cluster, seed), names, deadly).script(STEPS)
        real = RealSide(cluster, gateway)
        try:
            differing = run(script, model_of(cluster, seed), real, names)
        finally:
            real.forget_configs()
        assert not differing, "\n".join([*differing, *map(repr, script)])
