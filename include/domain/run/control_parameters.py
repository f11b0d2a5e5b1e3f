"""The parameters of `control_reassignment`, each defined once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from include.domain.request.fields import types
from include.domain.request.fields.shared import WHAT, Cluster
from include.domain.request.param_types import slow_rates
from include.domain.request.validation import given
from include.domain.run.states import Control
from include.errors import InvalidRequestError
from include.field_descriptions import Unit

_TITLES: Mapping[Control, str] = {
    Control.RUN: "Run: carry out the very plan that a dry run has made",
    Control.NEXT_WINDOW: "Next window: have the next maintenance window carry that plan out",
    Control.PAUSE: "Pause: start nothing more",
    Control.RESUME: "Resume: go on with a paused plan",
    Control.CHANGE_THROTTLE: "Change the throttle, from the next poll on",
    Control.CANCEL: "Cancel: cancel what is in flight, and take throttles back",
    Control.ROLL_BACK: "Roll back: take back what a plan that has ended moved",
}


class ControlParams(BaseModel):
    """What a run of `control_reassignment` takes, and how forms show it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kafka_config_id: Cluster = "kafka_default"
    plan_id: Annotated[
        str,
        types.PLAN_ID,
        WHAT,
        Field(
            title="Plan",
            description="The id of the plan, as its page, its report and the logs of its run "
            "show it.",
            examples=["20300131T040000Z-drain-0123456789"],
        ),
    ] = ""
    action: Annotated[
        Control,
        types.one_of(Control, _TITLES),
        WHAT,
        Field(title="Action", description="What is asked of the plan."),
    ] = Control.PAUSE
    throttle: Annotated[
        types.OptionalRate,
        Unit("bytes per second"),
        WHAT,
        Field(
            title="Throttle",
            description="Bytes per second, for each broker and direction. Change the throttle "
            "needs it. Run, resume and roll back take it in place of the plan's own.",
            examples=[50000000],
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """A validated request.

    :param rate_bytes_per_s: a throttle for it; None = none is asked for.
    """

    plan_id: str
    control: Control
    rate_bytes_per_s: int | None

    @property
    def stops(self) -> bool:
        """Whether it only stops a plan: that is never refused."""
        return self.control in (Control.PAUSE, Control.CANCEL)


def parse_control(params: Mapping[str, Any]) -> ControlRequest:
    """The raw parameters of a run as a request. What fits the plan's state, the ledger knows.

    :raises InvalidRequestError: lists every problem.
    """
    read = given(ControlParams, params)
    values, problems = read.values, list(read.problems)
    if not values.plan_id and "plan_id" not in read.failed:
        problems.append("plan_id is needed: the plan that this is asked of.")
    needs_rate = values.action is Control.CHANGE_THROTTLE and "action" not in read.failed
    if needs_rate and values.throttle is None and "throttle" not in read.failed:
        problems.append("Action change_throttle needs throttle.")
    problems += slow_rates({"throttle": values.throttle})
    if problems:
        raise InvalidRequestError(problems)
    return ControlRequest(values.plan_id, values.action, values.throttle)
