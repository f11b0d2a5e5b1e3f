"""Steps on the plan's page, beside its buttons."""

from __future__ import annotations

import pytest

from rehome.account.words.step_words import ALERT_STEPS, HURT_CONTROLS, step_here
from rehome.alerts.kinds import AlertKind
from rehome.domain.run.states import Control


@pytest.mark.parametrize("kind", ALERT_STEPS)
def test_beside_its_button_no_step_names_the_dag_that_does_it(kind: AlertKind) -> None:
    control, here = step_here(kind, "Resume it with control_reassignment.")
    assert control is not None
    assert "control_reassignment" not in here


def test_other_alerts_keep_their_own_step() -> None:
    assert step_here(AlertKind.DONE, "Nothing.") == (None, "Nothing.")


def test_hurts_that_a_request_helps_against_have_one() -> None:
    assert set(HURT_CONTROLS.values()) <= set(Control)
