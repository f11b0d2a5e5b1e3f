"""Which brokers the gate finds to have given up leaders that they need."""

from __future__ import annotations

import pytest

from rehome.domain.actions import Action
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.request.parse_request import parse_request
from rehome.quality.plan.leader_table import leaders_after
from tests.planning.clusters import cluster
from tests.quality.plan.cases import planned, with_moves, with_summary
from tests.quality.plan.checked_plans import move


@pytest.mark.parametrize(("cap", "given_up"), [(None, 4), (100, 4), (3, None)])
def test_only_caps_that_bind_excuse_a_broker_that_gave_up_its_leaders(
    cap: int | None, given_up: int | None
) -> None:
    """Broker 1 led four, needs two, and ends with none: it is named for that."""
    of = cluster([""] * 2, [(0, 1), (0, 1), (1, 0), (1, 0), (1, 0), (1, 0)], topic="payments")
    caps = {} if cap is None else {"caps": {"default": {"leaders": cap}}}
    request = parse_request(
        {"action": Action.BALANCE_LEADERS.value, "min_leaders": {"payments": 2}, **caps}
    )
    note = Infeasible(
        Subject(SubjectKind.MIN_LEADERS, "payments", 1),
        Obstacle.NO_MOVE,
        wanted=2.0,
        nearest=0.0,
    )
    checked = with_moves(
        planned(of.snapshot(), request), [move(n, (1, 0), (0, 1)) for n in (2, 3, 4, 5)]
    )
    named = with_summary(checked, infeasible=(note,))
    rows = {row["broker"]: row for row in leaders_after(named).to_pylist()}
    assert rows[1]["is_named"]
    assert rows[1]["given_up"] == given_up
