"""Sends what other tasks have written down: a slow channel holds nothing up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rehome import alerting
from rehome.run.causes.operator import RecordedOperator

if TYPE_CHECKING:
    from rehome.run.context import RunContext


class SendAlertsOperator(RecordedOperator):
    """Sends every alert that has not reached its channels, for a minute at most; a later sweep
    sends the rest. A channel's failure fails no task.
    """

    ui_color = "#f4ecd8"
    template_fields: Sequence[str] = ()

    def step(self, context: RunContext) -> None:
        """Send."""
        alerting.send_left_over(context.ledger)
