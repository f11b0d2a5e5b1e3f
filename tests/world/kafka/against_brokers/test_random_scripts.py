"""The model is held to real brokers: random scripts run on both, answers and states are compared.

What a broker does otherwise fixes the model, and stands in docs/decisions/044-a-model-of-kafka.md.
"""

from __future__ import annotations

import itertools
import os

import pytest

from local.kafka.cluster import LocalCluster
from rehome.cluster.gateway import ClusterGateway
from tests.conftest import Topics, impatient_gateway
from tests.versions.since import modelled
from tests.world.kafka.against_brokers.compare import run
from tests.world.kafka.against_brokers.generate import RATES, Writer
from tests.world.kafka.against_brokers.sides import RealSide, model_of
from tests.world.kafka.against_brokers.steps import Step

STEPS = 12
_serial = itertools.count()


def seeds(few: int, many: int) -> list[object]:
    more = [pytest.param(seed, marks=pytest.mark.long) for seed in range(few, many)]
    return [*range(few), *more]


@modelled
@pytest.mark.parametrize("seed", seeds(3, 200))
def test_a_random_script_ends_alike(
    cluster: LocalCluster, gateway: ClusterGateway, seed: int
) -> None:
    compare(cluster, gateway, seed, deadly=False)


@modelled
@pytest.mark.parametrize("seed", seeds(0, 40))
def test_a_script_in_which_brokers_die_ends_alike(mortal: LocalCluster, seed: int) -> None:
    with impatient_gateway(mortal) as gateway:
        compare(mortal, gateway, seed, deadly=True)


@modelled
def test_keys_that_brokers_do_not_know_are_kept_on_their_default(
    cluster: LocalCluster, gateway: ClusterGateway
) -> None:
    """Of a request that has one error nothing is done: a rate is never without its mark."""

    def change(*changes: tuple[str, str, str | None], validate_only: bool = False) -> Step:
        return Step("configs", ([("broker", "", *each) for each in changes], validate_only))

    rate, mark, other = RATES[0], "rehome.needs.0f.p.default.leader.5", "rehome.before.x"
    script = [
        change((rate, "SET", "5"), (mark, "SET", "1")),
        Step("describe_default"),
        Step("describe", ("broker", "", [mark, rate])),
        change((rate, "SET", "junk"), (other, "SET", "1")),
        change((other, "SET", "1"), validate_only=True),
        change((mark, "APPEND", "1")),
        change((other, "DELETE", None)),
        Step("describe_default"),
        change((rate, "DELETE", None), (mark, "DELETE", None)),
        Step("describe_default"),
    ]
    real = RealSide(cluster, gateway)
    try:
        assert run(script, model_of(cluster, 1), real, []) == []
    finally:
        real.forget_configs()


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
