"""The parameters of `control_reassignment`, each defined once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rehome.domain.broker_rates import BrokerRates
from rehome.domain.request.fields import types
from rehome.domain.request.fields.shared import WHAT, Cluster
from rehome.domain.request.param_types import slow_rates
from rehome.domain.request.validation import read_params
from rehome.domain.run.states import Control
from rehome.errors import InvalidRequestError
from rehome.field_descriptions import Unit

_TITLES: Mapping[Control, str] = {
    Control.RUN: "Run: carry out the very plan that a dry run has made",
    Control.NEXT_WINDOW: "Next window: have the next maintenance window carry that plan out",
    Control.PAUSE: "Pause: start nothing more",
    Control.RESUME: "Resume: start a paused plan again",
    Control.CHANGE_THROTTLE: "Change the throttle, from the next poll on",
    Control.CHANGE_MOVES: "Change the moves at once, from the next poll on",
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
    throttle_by_broker: Annotated[
        types.OptionalRatesByBroker,
        Unit("bytes per second"),
        WHAT,
        Field(
            title="Throttles of single brokers",
            description="A rate for each broker that is to have one of its own from now on: leader "
            "is what it sends, follower what it receives, a number is both. Nothing given: they "
            "stay; {}: no broker has one.",
            examples=[{"1": {"leader": 5000000, "follower": 2000000}, "4": 1000000}],
        ),
    ] = None
    max_moves_per_broker: Annotated[
        types.OptionalCount,
        WHAT,
        Field(
            title="Moves at once",
            description="The most moves at once, for each broker and direction. Change the moves "
            "at once needs it.",
            examples=[2],
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """A validated request.

    :param rate_bytes_per_s: a throttle for it; None = none is asked for.
    :param rates_by_broker: those of single brokers from now on; None = they stay.
    :param moves_per_broker: moves at once from now on; None = none is asked for.
    """

    plan_id: str
    control: Control
    rate_bytes_per_s: int | None
    rates_by_broker: BrokerRates | None = None
    moves_per_broker: int | None = None

    @property
    def stops(self) -> bool:
        """Whether it only stops a plan: that is never refused."""
        return self.control in (Control.PAUSE, Control.CANCEL)


def parse_control(params: Mapping[str, Any]) -> ControlRequest:
    """The raw parameters of a run as a request. What fits the plan's state, the ledger knows.

    :raises InvalidRequestError: lists every problem.
    """
    read = read_params(ControlParams, params)
    values, problems = read.values, list(read.problems)
    if not values.plan_id and "plan_id" not in read.failed:
        problems.append("plan_id is needed: the plan that this is asked of.")
    needs_rate = values.action is Control.CHANGE_THROTTLE and "action" not in read.failed
    rated = values.throttle is not None or values.throttle_by_broker is not None
    if needs_rate and not rated and not {"throttle", "throttle_by_broker"} & read.failed:
        problems.append("Action change_throttle needs throttle, or throttle_by_broker.")
    if "action" not in read.failed:
        if values.throttle_by_broker is not None and not needs_rate:
            problems.append(f"Action {values.action} takes no throttle_by_broker.")
        problems += _moves_problems(values, read.failed)
    problems += slow_rates({"throttle": values.throttle})
    if problems:
        raise InvalidRequestError(problems)
    return ControlRequest(
        values.plan_id,
        values.action,
        values.throttle,
        values.throttle_by_broker,
        values.max_moves_per_broker,
    )


def _moves_problems(values: ControlParams, failed: Collection[str]) -> Iterator[str]:
    moves = values.max_moves_per_broker
    if values.action is not Control.CHANGE_MOVES:
        if moves is not None:
            yield f"Action {values.action} takes no max_moves_per_broker."
        return
    if moves is None and "max_moves_per_broker" not in failed:
        yield "Action change_moves needs max_moves_per_broker."
    if values.throttle is not None:
        yield "Action change_moves takes no throttle: ask for that with change_throttle."
