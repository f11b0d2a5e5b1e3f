"""The errors by which tasks end their runs for reasons that have a kind, or ask again."""

from __future__ import annotations

from airflow.providers.common.compat.sdk import AirflowException

from rehome.domain.run.causes.cause import CauseKind
from rehome.errors import RehomeError


class EndedError(RehomeError):
    """A task ends its run, and another attempt would meet the same.

    :param kind: of the cause.
    :param passing: another attempt may go through after all.
    """

    def __init__(
        self,
        kind: CauseKind,
        what: str,
        *,
        state_left: str = "",
        next_step: str = "",
        passing: bool = False,
    ) -> None:
        self.kind = kind
        self.passing = passing
        super().__init__(what, state_left=state_left, next_step=next_step)


class AskedAgainError(AirflowException):
    """Airflow tries the task again, which asks anew: a request for input has one answer only."""
