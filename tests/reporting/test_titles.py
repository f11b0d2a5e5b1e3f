"""Plans are called by what they do."""

from __future__ import annotations

from typing import Any

import pytest

from rehome.domain.run.states import PlanState
from rehome.reporting.titles import title_of
from tests.reporting.reported_plans import moves, plan_of, record


@pytest.mark.parametrize(
    ("action", "request_json", "title"),
    [
        ("drain", {"brokers": [4]}, "Drain broker 4"),
        ("expand", {"brokers": [4, 5]}, "Fill brokers 4 and 5"),
        ("rebalance", {"brokers": []}, "Rebalance"),
        ("rebalance", {"brokers": [1, 2, 3]}, "Rebalance of brokers 1, 2 and 3"),
        ("set_replication_factor", {"replication_factor": 3}, "Set the replication factor to 3"),
        ("rollback", {"plan_id": "p7"}, "Roll back p7"),
        ("reassign", {"brokers": ""}, "Reassign as given"),
        ("of_a_newer_rehome", {}, "of a newer rehome"),
    ],
)
def test_a_title_says_what_is_done(action: str, request_json: dict[str, Any], title: str) -> None:
    plan = plan_of(*moves())
    assert title_of(record(plan, PlanState.DONE, action=action, request=request_json)) == title
