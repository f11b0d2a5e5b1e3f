"""Which log dirs and brokers an evacuation empties, as the gate sees it."""

from __future__ import annotations

from random import Random

import pytest

from rehome.domain.actions import Action
from rehome.quality.facts.evacuated import emptied_brokers, evacuated_log_dirs
from rehome.quality.facts.gate_input import Checked
from rehome.quality.plan.tables import plan_tables
from tests.quality.plan.cases import planned
from tests.quality.plan.clean import random_cluster, random_request


def evacuation(seed: int) -> Checked:
    """The only log dir of a broker is emptied."""
    rng, depth = Random(seed), seed % 4
    of = random_cluster(rng, depth)
    return planned(of.snapshot(), random_request(rng, of, Action.EVACUATE_LOG_DIRS, depth))


@pytest.mark.parametrize("seed", [10051, 10265])
def test_a_broker_without_a_log_dir_left_counts_as_drained_for_the_racks(seed: int) -> None:
    checked = evacuation(seed)
    (name,) = checked.request.log_dirs
    assert evacuated_log_dirs(checked) == {(name.broker, name.path)}
    assert emptied_brokers(checked) == {name.broker}
    rows = plan_tables(checked)["moves"].to_pylist()
    assert rows
    assert not any(name.broker in row["better"] for row in rows)
