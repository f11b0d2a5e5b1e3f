"""Alerts: each is sent once, by one process, and again only while it lasts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, tuple_, update

from rehome.alerts.kinds import AlertKind
from rehome.domain.clock import new_id
from rehome.domain.run.event_kind import EventKind
from rehome.ledger.base.alert_records import AlertRecord, DueAlert, RaisedAlert
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import ALERTS
from rehome.ledger.stores.events import write_event

CLAIM_S = 120.0
"""So long one process has to send an alert; after that another one may."""
RETRY_S = 60.0
"""A channel that has failed is tried again no sooner."""
KEPT_FOR = timedelta(days=1)
"""So long after it was last raised the sweep still tries to send what no channel has taken."""
NOTED_S = 30.0
"""How often it is written down, at most, that an alert lasts."""

_Key = tuple[AlertKind, str]
_THESE = select(ALERTS).where(
    tuple_(ALERTS.c.kind, ALERTS.c.subject).in_(bindparam("places", expanding=True))
)
_OPEN = select(ALERTS).where(
    ALERTS.c.kind.in_(bindparam("kinds", expanding=True)), ALERTS.c.closed_at.is_(None)
)
_ALL = select(ALERTS).order_by(ALERTS.c.first_raised_at, ALERTS.c.kind, ALERTS.c.subject)
_OF_PLAN = _ALL.where(ALERTS.c.plan_id == bindparam("of"))
_OPEN_OF_PLAN = select(ALERTS.c.kind).where(
    ALERTS.c.plan_id == bindparam("of"),
    ALERTS.c.kind.in_(bindparam("kinds", expanding=True)),
    ALERTS.c.closed_at.is_(None),
)
_NEWER = select(ALERTS).where(
    ALERTS.c.closed_at.is_(None), ALERTS.c.last_raised_at > bindparam("than")
)
_OPEN_OF_CLUSTER = _OPEN.where(ALERTS.c.cluster_id == bindparam("of"))
_OF_CLUSTER_ITSELF = select(ALERTS).where(
    ALERTS.c.cluster_id == bindparam("of"),
    ALERTS.c.plan_id.is_(None),
    ALERTS.c.closed_at.is_(None),
)
_NEW = insert(ALERTS)
_AT = update(ALERTS).where(
    ALERTS.c.kind == bindparam("of_kind"), ALERTS.c.subject == bindparam("about")
)


class AlertStore(Database):
    """Alerts, one row per kind and subject."""

    def raise_alerts(
        self,
        alerts: Collection[RaisedAlert],
        over: Collection[_Key] = (),
        *,
        quiet_s: float = 0.0,
        claimed: bool = True,
    ) -> list[DueAlert]:
        """Record what is found, and claim which alerts are due now.

        Of several processes that find the same, one gets it. It says by :meth:`record_sent` how
        that went; where it does not, the next one that finds it gets it after ``CLAIM_S``.

        :param alerts: each as long as it lasts.
        :param over: what is not found any more, by kind and subject.
        :param quiet_s: what is over is closed when it was not found for so long: something that
            comes and goes is sent once.
        :param claimed: if not, nothing is claimed: :meth:`claim_unsent_alerts` finds what is due.
        """
        now = self._clock()
        with self.reading() as connection:
            rows = _rows(connection, [*(item.key for item in alerts), *over])
        if not any(_notable(rows.get(item.key), item, now) for item in alerts) and not any(
            _closable(rows.get(key), now, quiet_s) for key in over
        ):
            return []
        due: list[DueAlert] = []
        with self.writing() as connection:
            rows = _rows(connection, [*(item.key for item in alerts), *over])
            for item in alerts:
                due += _raise_one(connection, rows.get(item.key), item, now, claimed=claimed)
            for key in over:
                if _closable(rows.get(key), now, quiet_s):
                    _change(connection, key, {"closed_at": now})
        return due if claimed else []

    def close_alerts(self, plan_id: str, *kinds: AlertKind) -> None:
        """Close what was raised about a plan: what comes later is new."""
        table = ALERTS.c
        of = {"of": plan_id, "kinds": [str(kind) for kind in kinds]}
        with self.reading() as connection:
            if connection.execute(_OPEN_OF_PLAN, of).first() is None:
                return
        with self.writing() as connection:
            connection.execute(
                update(ALERTS)
                .where(table.plan_id == plan_id, table.kind.in_(kinds), table.closed_at.is_(None))
                .values(closed_at=self._clock())
            )

    def claim_unsent_alerts(self) -> list[DueAlert]:
        """Claim what lasts, was to be sent, and has not reached every channel yet.

        Alerts that each poll raises close by themselves; this is for those raised once.
        """
        now = self._clock()
        newer = {"than": now - KEPT_FOR}
        with self.reading() as connection:
            rows = connection.execute(_NEWER, newer).mappings().all()
        if not any(_left_over(row, now) for row in rows):
            return []
        due = []
        with self.writing() as connection:
            for row in connection.execute(_NEWER, newer).mappings().all():
                if _left_over(row, now):
                    due_alert = _due(row, row["alert"])
                    claim = now + timedelta(seconds=CLAIM_S)
                    values = {"claimed_until": claim, "message_id": due_alert.message_id}
                    _change(connection, (due_alert.kind, due_alert.subject), values)
                    due.append(due_alert)
        return due

    def unsent_since(self) -> datetime | None:
        """Since when the oldest alert waits that lasts, and has not reached every channel; None =
        none does.
        """
        query = select(ALERTS.c.first_raised_at, ALERTS.c.sent_at, ALERTS.c.failed_channels)
        with self.reading() as connection:
            rows = connection.execute(query.where(ALERTS.c.closed_at.is_(None))).all()
        waiting = (row.first_raised_at for row in rows if row.sent_at is None or row[2])
        return min(waiting, default=None)

    def record_sent(self, due: DueAlert, text: str, results: Mapping[str, str]) -> None:
        """Record how sending went, in the alert's row and in the events.

        :param text: what was sent.
        :param results: channel → why it has not taken it; "" = it has. Empty: there is none.
        """
        now = self._clock()
        failed = {channel: why for channel, why in results.items() if why}
        taken = [channel for channel in results if channel not in failed]
        with self.writing() as connection:
            row = _rows(connection, [(due.kind, due.subject)]).get((due.kind, due.subject))
            if row is None:
                return
            values: dict[str, Any] = {"claimed_until": None, "tried_at": now}
            if due.channels is None:
                values |= {"sent_at": now, "failed_channels": failed}
            else:  # those that are set up no more are not waited for
                values["failed_channels"] = failed
            if taken or not results:
                values["times_sent"] = row["times_sent"] + 1
            _change(connection, (due.kind, due.subject), values)
            about = {"plan_id": row["plan_id"], "cluster_id": row["cluster_id"]}
            if taken or not results:
                through = f"sent through {', '.join(taken)}" if taken else "in the log only"
                detail = f"{due.kind}: {text} ({through})"
                write_event(connection, now, EventKind.ALERT_SENT, detail, **about)
            for channel, why in failed.items():
                detail = f"{due.kind}: {channel}: {why}"
                write_event(connection, now, EventKind.ALERT_NOT_SENT, detail, **about)

    def alerts(self, plan_id: str | None = None) -> list[AlertRecord]:
        """Alerts about a plan, or all; those that were raised first come first."""
        query, of = (_ALL, {}) if plan_id is None else (_OF_PLAN, {"of": plan_id})
        with self.reading() as connection:
            rows = connection.execute(query, of).mappings().all()
        return [_record(row) for row in rows]

    def open_alerts(self, *kinds: AlertKind, cluster_id: str | None = None) -> list[AlertRecord]:
        """Alerts of these kinds that last, about a cluster or a plan of it; None = of any."""
        query = _OPEN if cluster_id is None else _OPEN_OF_CLUSTER
        of = {"kinds": [str(kind) for kind in kinds], "of": cluster_id}
        with self.reading() as connection:
            return [_record(row) for row in connection.execute(query, of).mappings()]

    def open_alerts_of_cluster(self, cluster_id: str) -> list[AlertRecord]:
        """Alerts of every kind that last, about a cluster itself: no plan's page shows them."""
        with self.reading() as connection:
            rows = connection.execute(_OF_CLUSTER_ITSELF, {"of": cluster_id}).mappings()
            return [_record(row) for row in rows]


def _raise_one(
    connection: Connection,
    row: RowMapping | None,
    item: RaisedAlert,
    now: datetime,
    *,
    claimed: bool,
) -> list[DueAlert]:
    """Write one down; with it where it is to be sent, else nothing."""
    if not _notable(row, item, now):
        return []
    due = _due_now(row, item, now)
    values: dict[str, Any] = {"last_raised_at": now}
    if due is not None:
        values |= {"alert": dict(item.alert), "message_id": due.message_id}
        if claimed:
            values["claimed_until"] = now + timedelta(seconds=CLAIM_S)
        elif due.channels is None:
            values["sent_at"] = None
    if row is None or _new(row, item):
        values |= {
            "occurrence": item.occurrence,
            "plan_id": item.plan_id,
            "cluster_id": item.cluster_id,
            "first_raised_at": now,
            "closed_at": None,
            "sent_at": None,
            "tried_at": None,
            "times_sent": 0,
            "failed_channels": {},
        }
    if row is None:
        values |= {"kind": item.kind, "subject": item.subject}
        connection.execute(_NEW, values)
    else:
        _change(connection, item.key, values)
    return [] if due is None else [due]


def _due_now(row: RowMapping | None, item: RaisedAlert, now: datetime) -> DueAlert | None:
    if row is None or _new(row, item):
        return DueAlert(item.kind, item.subject, item.alert, new_id())
    if _is_claimed(row, now):
        return None
    sent_at = row["sent_at"]
    again = item.again_s is not None and sent_at is not None
    if again and now - sent_at >= timedelta(seconds=item.again_s or 0.0):
        return DueAlert(item.kind, item.subject, item.alert, new_id())
    return _due(row, item.alert) if _left_over(row, now) else None


def _due(row: RowMapping, alert: Mapping[str, Any]) -> DueAlert:
    """To the channels that have not taken it; to all where nobody has recorded that it was sent."""
    channels = None if row["sent_at"] is None else frozenset(row["failed_channels"])
    message_id = row["message_id"] or new_id()
    return DueAlert(AlertKind(row["kind"]), row["subject"], alert, message_id, channels)


def _left_over(row: RowMapping, now: datetime) -> bool:
    if _is_claimed(row, now):
        return False
    tried_at = row["tried_at"]
    if row["sent_at"] is None or tried_at is None:
        return True
    # Where that is to come yet, a clock was put back: how long ago it was is not known.
    waited = tried_at > now or now - tried_at >= timedelta(seconds=RETRY_S)
    return bool(row["failed_channels"]) and waited


def _is_claimed(row: RowMapping, now: datetime) -> bool:
    return row["claimed_until"] is not None and now < row["claimed_until"]


def _new(row: RowMapping, item: RaisedAlert) -> bool:
    return row["closed_at"] is not None or row["occurrence"] != item.occurrence


def _notable(row: RowMapping | None, item: RaisedAlert, now: datetime) -> bool:
    if item.reminds_of is not None and not _lasts(row, item.reminds_of):
        return False
    if row is None or _due_now(row, item, now) is not None:
        return True
    return bool(now - row["last_raised_at"] >= timedelta(seconds=NOTED_S))


def _lasts(row: RowMapping | None, occurrence: str) -> bool:
    return row is not None and row["closed_at"] is None and row["occurrence"] == occurrence


def _closable(row: RowMapping | None, now: datetime, quiet_s: float) -> bool:
    if row is None or row["closed_at"] is not None:
        return False
    return bool(now - row["last_raised_at"] >= timedelta(seconds=quiet_s))


def _change(connection: Connection, key: _Key, values: Mapping[str, Any]) -> None:
    kind, subject = key
    connection.execute(_AT, {"of_kind": kind, "about": subject, **values})


def _rows(connection: Connection, keys: Collection[_Key]) -> dict[_Key, RowMapping]:
    if not keys:
        return {}
    places = [(str(kind), subject) for kind, subject in keys]
    rows = connection.execute(_THESE, {"places": places}).mappings().all()
    return {(AlertKind(row["kind"]), row["subject"]): row for row in rows}


def _record(row: RowMapping) -> AlertRecord:
    return AlertRecord(**{**row, "kind": AlertKind(row["kind"])})
