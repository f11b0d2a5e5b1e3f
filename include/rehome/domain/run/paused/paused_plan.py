"""What a plan waits for that is paused, or was handed over: a window, or a person. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rehome.domain.run.findings import SETTINGS_CHECK, Severity


class DagState(enum.Enum):
    """Whether a DAG runs by its schedule."""

    RUNS = "runs"
    PAUSED = "paused"
    NOT_KNOWN = "not_known"  # tasks cannot ask Airflow
    NONE = "none"  # there is no such DAG for the cluster


class Why(enum.Enum):
    """Why a plan waits for a person."""

    PAUSED_BY_PERSON = "paused_by_person"
    NO_WINDOW = "no_window"  # none is coming
    NO_WINDOW_DAG = "no_window_dag"  # the cluster has no rebalance_in_window
    WINDOW_DAG_PAUSED = "window_dag_paused"  # in Airflow
    NOT_KNOWN = "not_known"  # the settings that decide it cannot be read


@dataclass(frozen=True, slots=True)
class GoesOn:
    """The run of a window takes it up.

    :param opens_at: of the window. ``is_open``: it has opened already.
    :param stuck: no move of it could end in its last window; of one that is handed over: none can
        end in this one, at the throttle that was asked for.
    :param sure: False = only if the DAG is unpaused, which is not known here.
    :param closes_at: of the window; None = not known.
    :param handed_over: it is not paused, but handed over to the windows.
    """

    opens_at: datetime
    is_open: bool = False
    sure: bool = True
    stuck: bool = False
    closes_at: datetime | None = None
    handed_over: bool = False


@dataclass(frozen=True, slots=True)
class NeedsPerson:
    """It waits until a person has it go on, cancels it, or removes the reason.

    :param detail: what is wrong, where the reason does not say it all.
    :param handed_over: it is not paused, but handed over to the windows.
    """

    why: Why
    detail: str = ""
    handed_over: bool = False


Outlook = GoesOn | NeedsPerson


@dataclass(frozen=True, slots=True)
class RefusedResume:
    """The last run that was to resume the plan changed nothing: its dry run has found errors.

    :param error: the first one, and ``others`` how many more; ``remedy``: of the first.
    :param breaks_limits: caps or broker sets of now are among them: no run can resume it.
    """

    error: str
    remedy: str
    others: int = 0
    breaks_limits: bool = False


def outlook(
    opens_at: datetime | None,
    window_dag: DagState,
    now: datetime,
    *,
    by_person: bool = False,
    stuck: bool = False,
    closes_at: datetime | None = None,
    handed_over: bool = False,
) -> Outlook:
    """What a plan waits for.

    :param opens_at: of the window whose run takes it up; None = none is coming.
    :param by_person: whether a person has paused it.
    :param stuck: whether no move of it could end in its last window, or can in the coming one.
    """
    if by_person:
        return NeedsPerson(Why.PAUSED_BY_PERSON)
    match window_dag:
        case DagState.NONE:
            return NeedsPerson(Why.NO_WINDOW_DAG, handed_over=handed_over)
        case DagState.PAUSED:
            return NeedsPerson(Why.WINDOW_DAG_PAUSED, handed_over=handed_over)
    if opens_at is None:
        return NeedsPerson(Why.NO_WINDOW, handed_over=handed_over)
    sure = window_dag is DagState.RUNS
    return GoesOn(opens_at, opens_at <= now, sure, stuck, closes_at, handed_over)


def refused_by(dry_run: Mapping[str, Any] | None) -> RefusedResume | None:
    """Why the last run that was to resume a paused plan did not: it has begun, so that its
    first dry run has found no error.

    :param dry_run: ``dry_run.json`` of the plan.
    """
    findings = (dry_run or {}).get("findings", ())
    # What no run can resume comes first.
    errors = sorted(
        (item for item in findings if item["severity"] == Severity.ERROR),
        key=lambda item: item["check"] != SETTINGS_CHECK,
    )
    if not errors:
        return None
    first = errors[0]
    return RefusedResume(
        f"{first['subject']}: {first['message']} {first.get('detail', '')}".rstrip(),
        first["remedy"],
        len(errors) - 1,
        first["check"] == SETTINGS_CHECK,
    )
