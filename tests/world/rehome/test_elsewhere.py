"""A connection that leads to another cluster for a while: nothing acts there."""

from __future__ import annotations

from collections.abc import Mapping
from unittest.mock import patch

import pytest

from rehome.alerts.kinds import AlertKind
from rehome.clusters import binding
from world.judge.judge import judge
from world.judge.violations import Kind
from world.script import Do, Script, Topic, Watch, What
from world.stage import Stage

TOPICS = (Topic("t", ((1, 2), (2, 3), (3, 4)), 20_000_000),)
DOES = (
    Do(70.0, "A", What.LED_ELSEWHERE, (530.0,)),
    Do(130.0, "fate", What.BROKER_LOST, (2,)),
)
SCRIPT = Script(5, 5, TOPICS, (), does=DOES, quiet_s=700.0, watches=(Watch("A"),))


def found_in(script: Script) -> tuple[set[Kind], Mapping[str, str], set[AlertKind]]:
    """Kinds of violations, where connections lead by the ledger, and kinds of alerts."""
    stage = Stage(script)
    try:
        stage.run()
        kinds = {each.kind for each in judge(stage.seen()).violations}
        ledger = stage.rehomes["A"].installation.ledger()
        return kinds, ledger.connections(), {alert.kind for alert in ledger.alerts()}
    finally:
        stage.end()


@pytest.mark.slow
def test_a_cluster_that_a_connection_comes_to_lead_to_is_left_alone_and_people_hear() -> None:
    kinds, leads, alerts = found_in(SCRIPT)
    assert kinds == set()
    assert leads == {"kafka_default": "model"}
    assert AlertKind.WRONG_CLUSTER in alerts


@pytest.mark.slow
def test_what_looks_at_no_binding_heals_the_other_cluster_and_is_found() -> None:
    with patch.object(binding, "misled_through", lambda *_: None):
        kinds, _, _ = found_in(SCRIPT)
    assert Kind.WRONG_CLUSTER in kinds
