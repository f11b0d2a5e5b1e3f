"""What becomes of what is asked of a plan, as types. ``words.answer_words`` has the words."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rehome.domain.broker_rates import BrokerRates
from rehome.domain.claims import Claim, ConfigSetting, NoThrottleLeft, Owed
from rehome.execution.control.cancel import Cancelled
from rehome.ledger.base.records import PlanRecord


class RunFor(enum.StrEnum):
    """What a new run of `reassign_partitions` is for."""

    CARRY_OUT = "carry_out"
    GO_ON = "go_on"
    TAKE_BACK = "take_back"


@dataclass(frozen=True, slots=True)
class RunNeeded:
    """A run is started.

    :param window_closed: the plan had a window, and the run has none.
    :param queued: its DAG is paused in Airflow, so it does not begin yet.
    """

    purpose: RunFor
    window_closed: bool = False
    queued: bool = False


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The windows of the cluster carry the plan out.

    :param before: plans that go first, one a window.
    """

    before: tuple[str, ...] = ()


class Pausing(enum.StrEnum):
    """What a request to pause leads to."""

    STAYS_PAUSED = "stays_paused"
    """The plan was paused already; only a person resumes it now."""
    WHEN_A_RUN_GOES_ON = "when_a_run_goes_on"
    """The plan's own run sends no heartbeat."""
    AT_NEXT_POLL = "at_next_poll"


@dataclass(frozen=True, slots=True)
class ToPause:
    """The request to pause is recorded.

    :param driver: the run that drives the plan.
    """

    when: Pausing
    driver: str


@dataclass(frozen=True, slots=True)
class NotToPause:
    """A plan that runs was to be resumed: no pause is asked for any more.

    :param paused_dag: in Airflow, so that no task of the run ``run_id`` starts; None = none is.
    """

    paused_dag: str | None = None
    run_id: str | None = None


class HoldsFrom(enum.StrEnum):
    """When a pace that was asked for holds."""

    NEXT_POLL = "next_poll"
    PLAN_RUNS = "plan_runs"
    """The plan does not run now."""
    RUN_GOES_ON = "run_goes_on"
    """The plan's own run sends no heartbeat."""
    DAG_UNPAUSED = "dag_unpaused"
    """The plan's DAG is paused in Airflow."""


@dataclass(frozen=True, slots=True)
class PaceAsked:
    """Another pace is recorded.

    :param rate_bytes_per_s: the plan's; None = it stays.
    :param by_broker: of single brokers; None = they stay.
    :param moves_per_broker: at once; None = they stay.
    :param driver: the run that drives the plan; ``dag_id``: its DAG.
    """

    holds: HoldsFrom
    driver: str
    dag_id: str | None
    rate_bytes_per_s: int | None = None
    by_broker: BrokerRates | None = None
    moves_per_broker: int | None = None


@dataclass(frozen=True, slots=True)
class ToCancel:
    """The plan's run cancels it.

    :param lease_ends_at: aware UTC; should the run be dead, the plan can be cancelled without it
        after that.
    """

    driver: str
    lease_ends_at: datetime
    unthrottled: bool


@dataclass(frozen=True, slots=True)
class CancelledUnstarted:
    """The plan is cancelled; by the ledger nothing of it had started."""


@dataclass(frozen=True, slots=True)
class ThrottlesLeft:
    """What is left of a plan's throttles. A value that this ledger has not set may be another
    client's, or one of ours that a ledger which was restored does not know.

    :param owed: settings that could not be taken back yet.
    :param of_others: settings with values that this ledger has not set.
    """

    owed: tuple[ConfigSetting, ...] = ()
    of_others: int = 0

    @property
    def claims(self) -> tuple[Claim, ...]:
        """What that says of the cluster."""
        if self.owed:
            return (Owed(self.owed),)
        return () if self.of_others else (NoThrottleLeft(),)


@dataclass(frozen=True, slots=True)
class CancelledHere:
    """The plan is cancelled, without a run.

    :param record: the plan as it was read before.
    """

    record: PlanRecord
    done: Cancelled
    throttles: ThrottlesLeft


ControlAnswer = (
    RunNeeded
    | HandedOver
    | ToPause
    | NotToPause
    | PaceAsked
    | ToCancel
    | CancelledUnstarted
    | CancelledHere
)


@dataclass(frozen=True, slots=True)
class Controlled:
    """What a request has led to.

    :param answer: what happens now.
    :param run: parameters of the `reassign_partitions` run that is needed; None = no new run.
    :param claims: what the answer says of the cluster.
    """

    answer: ControlAnswer
    run: Mapping[str, Any] | None = None
    claims: tuple[Claim, ...] = ()
