"""What the books of a search say after many replicas have moved at once."""

from __future__ import annotations

import numpy as np
import pytest

from rehome.planning.search.state import Search
from tests.planning.posed import posed_case


@pytest.mark.parametrize("few", [True, False])
def test_a_broker_lists_what_it_holds_after_replicas_were_put_down(few: bool) -> None:
    search = Search(posed_case("skew")[0])
    replicas = np.arange(0, search.flat.size, 7)
    search.lift(replicas)
    search.put(replicas, (search.holders(replicas) + 1) % len(search.problem.gives), few=few)
    for broker in range(len(search.problem.gives)):
        held = np.flatnonzero(search.flat == broker)
        assert np.sort(search.on(broker)).tolist() == held.tolist()
