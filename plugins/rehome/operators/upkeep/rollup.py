"""Rolls snapshots up into the history that plans read, and removes what is old."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rehome import alerting
from rehome.alerts.kinds import AlertKind
from rehome.domain.clock import utc_now
from rehome.run.authority import own_snapshot
from rehome.run.causes.operator import RecordedOperator

if TYPE_CHECKING:
    from rehome.run.context import RunContext


class RollUpSnapshotsOperator(RecordedOperator):
    """Brings the daily rollups of a snapshot's cluster up to date.

    It adds what is new since the last time, a second's work for 100,000 partitions; after weeks
    without it, ``spark_jobs/rollup.py`` catches up on all days at once. May be repeated: nothing
    is counted twice.
    """

    template_fields: Sequence[str] = ()
    ui_color = "#e8eef5"

    def step(self, context: RunContext) -> None:
        """Roll up, then remove."""
        from rehome.load_history.daily_rollups import SnapshotPace, pending_days, roll_up
        from rehome.load_history.retention import remove_old
        from rehome.warehouse import cluster_of

        settings, warehouse = context.settings, context.warehouse
        uri = own_snapshot.uri_of(context)
        cluster_id = cluster_of(uri)
        pace = SnapshotPace(longest_s=settings.max_snapshot_gap_s)
        for day in pending_days(warehouse, cluster_id):
            span = roll_up(day, pace)
            self.log.info("%s: %d snapshots, through %s", day.day, span.snapshots, span.through)
            for start, end in span.gaps:
                self.log.warning("No snapshot between %s and %s", start, end)
            for reason in span.unread:
                self.log.warning("Bytes out are not known: %s", reason)
        removed = remove_old(
            warehouse,
            cluster_id,
            utc_now(),
            snapshot_days=settings.snapshot_retention_days,
            rollup_days=settings.rollup_retention_days,
        )
        if removed:
            self.log.info("%d old snapshots and rollups removed", len(removed))
            context.ledger.forget_snapshots([each.split("/snapshots/")[-1] for each in removed])
        self._forecast(context, uri)

    def _forecast(self, context: RunContext, uri: str) -> None:
        """Alert people to disks that will be full soon, as replicas lie and grow now."""
        from rehome.alerts.due_alerts import disks_full
        from rehome.load_history.forecast import disk_forecast
        from rehome.load_history.known_rates import GROWTH, Demands, LoadHistory
        from rehome.warehouse import read_snapshot

        settings, snapshot = context.settings, read_snapshot(uri)
        cluster_id = snapshot.cluster_id
        demands = Demands(settings.history_days, settings.min_history_hours)
        history = LoadHistory.read(context.warehouse, snapshot, demands)
        if not history.is_known(GROWTH):
            return
        rows = disk_forecast(snapshot, None, history, settings.forecast_days)
        alert = disks_full(
            [row.to_json() for row in rows],
            settings.forecast_days,
            subject=cluster_id,
            cluster_id=cluster_id,
            connection=str(context.given.get("kafka_config_id") or ""),
        )
        over = [] if alert else [(AlertKind.DISK_FORECAST, cluster_id)]
        alerting.raise_alerts(context.ledger, [alert] if alert else [], over)
