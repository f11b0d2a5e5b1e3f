"""What a run was given: its parameters, its window, who triggered it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rehome.domain.request.presets import filled
from rehome.fleet import clusters
from rehome.params import FORM_DEFAULTS
from rehome.run import run_askers
from rehome.timetables.maintenance_window import MaintenanceWindowTimetable

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.domain.request.presets import Filled


def params_of(context: Context | Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters of the run, with what its preset and its cluster's targets fill in."""
    return filled_params(context).params


def filled_params(context: Context | Mapping[str, Any]) -> Filled:
    """The same, with what the preset and the cluster's targets have set.

    :raises ClustersFileError: the clusters file cannot be used.
    """
    run = context["dag_run"]
    return clusters.fill_params(_given_params(context), run.run_after, run_askers.chosen_in(run))


def own_params(context: Context | Mapping[str, Any]) -> Mapping[str, Any]:
    """Those that say which plan is the run's, with what its preset fills in. No cluster has a
    target for them: what a run has begun is found, and ended, whatever the clusters file says.
    """
    run_after = context["dag_run"].run_after
    return filled(_given_params(context), FORM_DEFAULTS, lambda: run_after).params


def _given_params(context: Context | Mapping[str, Any]) -> Mapping[str, Any]:
    """What the run was given, without what its DAG has for other tasks of its author's own. Of the
    rest, a name that there is not is refused.
    """
    params = context["params"]
    others = set(getattr(context.get("dag"), "params", ())) - FORM_DEFAULTS.keys()
    return {name: params[name] for name in params if name not in others} if others else params


def window_end_of(context: Context | Mapping[str, Any]) -> datetime | None:
    """When the maintenance window of the run closes, aware UTC; None = it has no window.

    A run of the schedule has the window that it was made for; where it began late, and another one
    that closes later was open by then, that one. The data interval of any other is the choice of
    who has triggered it: it has the window that was open when it was due, or the last one before.
    """
    timetable = getattr(context.get("dag"), "timetable", None)
    if not isinstance(timetable, MaintenanceWindowTimetable):
        return None
    run = context["dag_run"]
    of_schedule = run.data_interval_end if run_askers.is_by_schedule(run) else None
    if of_schedule is None:
        last: datetime = timetable.infer_manual_data_interval(run_after=run.run_after).end
        return last.astimezone(UTC)
    began = getattr(run, "start_date", None) or run.run_after
    newest = timetable.windows.open_at(began) if began < of_schedule else None
    end: datetime = max(of_schedule, newest.ends) if newest else of_schedule
    return end.astimezone(UTC)


def actor_of(context: Context | Mapping[str, Any]) -> str:
    """Who has asked for the run, in words: a user's name, or what else has started it."""
    return str(run_askers.asker_of(context))
