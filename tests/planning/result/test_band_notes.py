"""Notes on brokers inside their bands and off their fair share."""

from __future__ import annotations

import numpy as np
import pytest

from rehome.domain.resources import Resource
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.layout import Layout
from rehome.planning.model.load_bands import LoadBands
from rehome.planning.rebalance.band_notes import BandNotes
from tests.planning.clusters import cluster

TOLERANCES = {Resource.BYTES: np.inf, Resource.REPLICAS: 0.1}
BROKERS = 9


@pytest.mark.parametrize(("fair", "off"), [(80 / 9, []), (80.1 / 9, [0])])
def test_a_broker_at_the_very_end_of_its_tolerance_is_not_off(fair: float, off: list[int]) -> None:
    # a tenth of the fair share and one replica: 80 / 9 - 7 is just that
    counts = [7, 10] + [9] * 7
    rows = [(broker,) for broker, count in enumerate(counts) for _ in range(count)]
    layout = Layout(ClusterArrays.from_snapshot(cluster([""] * BROKERS, rows).snapshot()))
    every, load = np.ones(BROKERS, bool), np.array([layout.load, layout.count], float)
    targets = LoadBands(
        share=load,
        low=np.zeros_like(load),
        high=np.full_like(load, np.inf),
        domain=np.zeros(BROKERS, np.int64),
        fair=np.stack([load[0], np.full(BROKERS, fair)]),
        infeasible=(),
    )
    weights = np.stack([layout.size, np.ones(len(rows))])
    notes = BandNotes(layout, targets, weights, every, np.ones(len(rows), bool), False, False)
    assert [note.subject.broker for note in notes.shifted_notes(TOLERANCES)] == off
