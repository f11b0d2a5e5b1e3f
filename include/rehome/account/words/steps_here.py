"""What to do, for a reader whose page has the button for it: alerts and hurts say it elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from rehome.alerts.kinds import AlertKind
from rehome.domain.run.causes.hurts import HurtKind
from rehome.domain.run.states import Control

ALERT_STEPS: Mapping[AlertKind, tuple[Control, str]] = {
    AlertKind.ORPHANED: (Control.RESUME, "Resume the plan, or cancel it."),
    AlertKind.DAG_PAUSED: (
        Control.CANCEL,
        "Unpause the plan's DAG in Airflow: the run then goes on by itself. Or cancel the plan.",
    ),
    AlertKind.THROTTLE_RESTORED: (
        Control.PAUSE,
        "Find out who removes the throttle: kafka-reassign-partitions does, without "
        "--preserve-throttles. Or pause the plan.",
    ),
    AlertKind.OUTPACED: (
        Control.CHANGE_THROTTLE,
        "Raise the throttle above the rate named here. Where the approval or a policy forbids "
        "that, "
        "cancel the plan, and move these partitions when less is written to them.",
    ),
    AlertKind.WINDOW_WILL_BE_MISSED: (
        Control.CHANGE_THROTTLE,
        "What has not started by then is left for the next window. A higher throttle may bring it "
        "in.",
    ),
}
"""By kind: the request that the step is about, and the step. Of others, the alert's own is said."""
HURT_CONTROLS: Mapping[HurtKind, Control] = {
    HurtKind.DEAD_BROKERS: Control.CANCEL,
    HurtKind.WAITS_FOR_ROOM: Control.CANCEL,
    HurtKind.WAITS_FOR_WINDOW: Control.CHANGE_THROTTLE,
    HurtKind.OUTPACED: Control.CHANGE_THROTTLE,
}
"""The request that the step of a hurt is about."""


def step_here(kind: AlertKind, elsewhere: str) -> tuple[Control | None, str]:
    """The step of an alert on the plan's page."""
    return ALERT_STEPS.get(kind, (None, elsewhere))
