"""Plans of odd clusters: judged by code of its own, by the gate, and by what their notes say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from rehome.domain.plan.infeasible import Infeasible, Obstacle
from rehome.quality.facts.gate_input import Checked
from tests.quality.judged.judge import faults
from tests.quality.judged.odd_clusters import odd_plans
from tests.quality.judged.worse_spread import REMEDY, spread_worse
from tests.quality.plan.cases import rules_broken_by


def wrong(of: Checked) -> Iterator[str]:
    yield from faults(of.snapshot, of.plan, of.request, of.min_free)
    yield from (rule for rule in rules_broken_by(of) if not rule.startswith(REMEDY))
    yield from spread_worse(of)
    notes = of.plan.summary.infeasible
    yield from (f"said twice: {note}" for note, times in Counter(notes).items() if times > 1)
    targets = Counter(map(_target, (n for n in notes if n.obstacle is not Obstacle.ABOVE_CAP)))
    for (subject, resource), times in targets.items():
        if resource is not None and times > 1:
            yield f"{times} notes on {subject} and {resource}"


def _target(note: Infeasible) -> tuple[object, object]:
    return note.subject, note.resource


@pytest.mark.parametrize(
    "seeds",
    [
        range(14),
        pytest.param(range(1_925, 1_926), id="a repair that takes more than was counted on"),
        pytest.param(range(14, 100), marks=pytest.mark.slow),
        pytest.param(range(2_000), marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_no_plan_of_an_odd_cluster_is_wrong(seeds: range) -> None:
    made = {seed: list(wrong(of)) for seed, of in odd_plans(seeds)}
    assert len(made) > len(seeds) / 2
    assert {seed: found for seed, found in made.items() if found} == {}
