"""Judges fresh snapshots, and says which runs are to be started for what they show."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rehome import alerting
from rehome.alerts.finding_alerts import healing_stopped, kinds_counted, of_findings, with_own_alert
from rehome.alerts.kinds import AlertKind
from rehome.clusters.clusters_file import ClustersFileError
from rehome.domain.clock import utc_now
from rehome.domain.run.askers import RunDoor
from rehome.errors import RehomeError
from rehome.executors import refuse_unshared
from rehome.extras import airflow_metrics
from rehome.fleet import bound, judged_snapshots, watch_runs, watched_through, watching
from rehome.operators import assets
from rehome.run import run_authority
from rehome.run.causes.errors import EndedError
from rehome.run.causes.operator import RecordedOperator
from rehome.run.causes.recorded import tell_end
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.watching.finding_text import table_of, text_of, wait_text
from rehome.watching.last_attempt import attempt_text
from rehome.watching.respond import NotNow, respond

if TYPE_CHECKING:
    from rehome.clusters.watch_rules import WatchRules
    from rehome.fleet.judged_snapshots import JudgedSnapshot
    from rehome.fleet.watch_runs import StartedRun
    from rehome.fleet.watching import Fresh
    from rehome.ledger.store import Ledger
    from rehome.run.context import RunContext
    from rehome.watching.respond import Facts

NEWEST = 10
"""So many snapshots of a cluster are judged at most: after a pause, older ones are left out."""


class WatchClustersOperator(RecordedOperator):
    """Judges each snapshot that has come since the last run, cluster by cluster.

    Findings are kept in the ledger, and so is what each run is to have that is started for them.
    Returns the ids of those, at most one for each cluster. A cluster that cannot be judged hides no
    other: it fails the task at the end, or, where another one starts something,
    :class:`AllJudgedOperator`.
    Without events, as in a run that a person triggers, the newest snapshots are judged, and what
    went wrong is tried again.
    """

    ui_color = "#e8eef5"
    template_fields: Sequence[str] = ()

    def step(self, context: RunContext) -> list[str]:
        """Judge, and decide."""
        from pyarrow import ArrowException

        refuse_unshared(context)
        starts, failed, run = list[str](), dict[str, str](), context.dag_run
        with suppress(ClustersFileError):  # each cluster says so
            bound.settle(context.ledger)
        events = [event.extra for event in _events(context)]
        by_person = not events
        fresh = (
            watching.of_ledger(context.ledger)
            if by_person
            else watching.newest_first(context.ledger, events, NEWEST)
        )
        for cluster_id, snapshots in fresh.items():
            try:
                start = self._watch(context, cluster_id, snapshots, by_person=by_person)
                if start is not None:
                    request_args = start.run_id, start.conf, start.dag_id
                    run_authority.request_run(context, RunDoor.WATCH, *request_args)
                    starts.append(start.run_id)
            except (RehomeError, OSError, ArrowException) as error:
                self.log.error("Cluster %s is not watched: %s", cluster_id, error)
                failed[cluster_id] = getattr(error, "what", "") or str(error)
            except Exception as error:  # a fault of Rehome: it hides no other cluster
                self.log.exception("Cluster %s is not watched", cluster_id)
                failed[cluster_id] = f"{type(error).__name__}: {error}"
        context.ledger.record_not_watched(run.dag_id, run.run_id, list(failed))
        if failed and not starts:
            raise EndedError(TaskEnd(TaskReason.NOT_JUDGED, content=failed))
        if failed:  # AllJudgedOperator fails for it
            tell_end(context, TaskEnd(TaskReason.NOT_JUDGED, content=failed))
        return starts

    def _watch(
        self,
        context: RunContext,
        cluster_id: str,
        snapshots: Sequence[Fresh],
        *,
        by_person: bool,
    ) -> StartedRun | None:
        last, taken_through = None, snapshots[-1].connection
        watched = watched_through.connection_for(context.ledger, cluster_id, taken_through)
        connection, misled = watched.connection, watched.misled
        rules = watched.rules
        for fresh in snapshots:
            last = judged_snapshots.judge_snapshot(context.ledger, fresh.uri, connection, rules)
            self._tell(cluster_id, last)
            if not (misled is not None and misled.strays_to(cluster_id)):
                self._raise(context.ledger, cluster_id, connection or taken_through, last, rules)
        assert last is not None
        if misled is not None:
            bound.tell(context, misled)
            return None
        now = utc_now()
        facts = watching.known_facts(
            *(context.ledger, cluster_id, connection, last, rules, now),
            by_person=by_person,
            dag_paused=context.dag_paused,
        )
        return self._answer(context.ledger, cluster_id, connection, last, rules, facts, now)

    def _tell(self, cluster_id: str, judged: JudgedSnapshot) -> None:
        followed = judged.followed
        for each in followed.opened:
            self.log.warning("Opened: %s: %s", each.kind, text_of(each))
        for each in followed.closed:
            self.log.info("Closed: %s %s", each.kind, each.subject)
        self.log.info("Cluster %s: %d findings are open", cluster_id, len(followed.open))
        for line in table_of(followed.open):
            self.log.info("%s", line)

    def _raise(
        self,
        ledger: Ledger,
        cluster_id: str,
        connection: str,
        last: JudgedSnapshot,
        rules: WatchRules,
    ) -> None:
        """Write down each alert, and count findings for metrics."""
        from rehome.metrics.readings import ClusterGauges, cluster_readings

        still = last.followed.open
        raised = ledger.open_alerts(AlertKind.FINDING, cluster_id=cluster_id)
        own_alert = with_own_alert(planned_through=ledger.was_planned_through(connection))
        alerts = of_findings(still, raised, connection, rules, own_alert)
        alerting.journal(ledger, *alerts)
        airflow_metrics.emit(
            cluster_readings, ClusterGauges(cluster_id, findings=kinds_counted(still))
        )

    def _answer(
        self,
        ledger: Ledger,
        cluster_id: str,
        connection: str,
        last: JudgedSnapshot,
        rules: WatchRules,
        facts: Facts,
        now: datetime,
    ) -> StartedRun | None:
        response = respond(last.followed.open, facts, rules, now)
        for key, wait in response.waits.items():
            attempted = wait is NotNow.ATTEMPTED
            why = attempt_text(facts.attempts[key]) if attempted else wait_text(wait)
            self.log.info("Nothing is started for %s %s: %s", *key, why)
        stopped = healing_stopped(cluster_id, connection, rules, response.waits.values())
        alerting.journal(
            ledger,
            [] if stopped is None else [stopped],
            [(AlertKind.HEALING_STOPPED, cluster_id)] if stopped is None else [],
        )
        start = response.start
        if start is None:
            return None
        run = watch_runs.journal(ledger, start, connection, last.taken_at, now)
        kind, dag_id = start.finding.kind, run.dag_id
        self.log.info("%s: %s starts in %s for %s", start.policy, run.run_id, dag_id, kind)
        return run


class AllJudgedOperator(RecordedOperator):
    """Fails where clusters could not be judged, when the others have started what they need."""

    ui_color = "#e8eef5"
    template_fields: Sequence[str] = ()

    def step(self, context: RunContext) -> None:
        """Fail, or do nothing."""
        run = context.dag_run
        left_out = context.ledger.not_watched(run.dag_id, run.run_id)
        if left_out:
            raise EndedError(TaskEnd(TaskReason.SOME_NOT_JUDGED, names=tuple(left_out)))


def _events(context: RunContext) -> Sequence[Any]:
    """Of snapshots, that have started this run."""
    asset_events = context.airflow.get("triggering_asset_events") or {}
    events: Sequence[Any] = asset_events.get(assets.SNAPSHOTS_ASSET, ())
    return events
