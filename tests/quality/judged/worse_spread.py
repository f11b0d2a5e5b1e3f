"""Replicas that a plan spreads worse over racks, and that the gate refuses: rightly so only where
better brokers exist that have no room for them, or may not have them by their caps. Then an
operator has to say what gives way.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rehome.quality.engine.results import ROWS_SHOWN
from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.unplannable import takers
from rehome.quality.plan.move_table import moves_table_with_facts
from rehome.quality.plan.rules import EXPLICIT

REMEDY = "replicas are spread over level"


def spread_worse(of: Checked) -> Iterator[str]:
    """Moves for which the gate knows of no better broker, or of one with room: of those for which
    it looks for any.
    """
    if of.request.ignore_racks or of.request.action in EXPLICIT:
        return
    takes, levels = takers(of), range(1, of.rack_levels + 1)
    rows = moves_table_with_facts(of).to_pylist()
    worse = [
        row
        for row in rows
        if any(row[f"badly_after_{n}"] > row[f"badly_before_{n}"] for n in levels)
    ]
    for row in worse[:ROWS_SHOWN]:
        ends = [(row[f"badly_at_most_{n}"], row[f"badly_after_{n}"]) for n in levels]
        if not any(most is not None and badly > most for most, badly in ends):
            continue
        better = np.array(row["better"], np.int64)
        if not len(better) or takes(better, row["size_bytes"]):
            name = f"{row['topic']}-{row['partition']}"
            yield f"{name}: {row['target']} is spread worse; better: {row['better']}"
