"""Every metric of Rehome: name, kind, unit, labels, meaning. Pure data.

What emits, the mapping of the StatsD exporter, the Grafana dashboard, the alert rules and the
documentation all go by it; see docs/monitoring.md.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass

STATSD_PREFIX = "airflow"
"""What Airflow puts before every name, unless ``statsd_prefix`` says otherwise."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


class MetricKind(enum.StrEnum):
    """Kinds of metrics, as StatsD, OpenTelemetry and Prometheus know them."""

    GAUGE = "gauge"
    COUNTER = "counter"


class MetricUnit(enum.StrEnum):
    """What a value counts. A moment is in seconds since 1970 (UTC); 0 = there is none."""

    BYTES = "bytes"
    BYTES_PER_S = "bytes per second"
    MOMENT = "Unix time"
    SECONDS = "seconds"
    MESSAGES = "messages"
    COUNT = "count"


class Label(enum.StrEnum):
    """Labels of a metric's series. ``PLAN`` has many values, ``BROKER`` as many as the plan has."""

    CLUSTER = "cluster"  # Kafka's cluster id
    PLAN = "plan"
    STATE = "state"
    REASON = "reason"
    KIND = "kind"
    GATE = "gate"
    SEVERITY = "severity"
    BROKER = "broker"  # of the plan: its id


class MetricSubject(enum.StrEnum):
    """What a metric is about, which says when it is emitted."""

    PLAN = "plan"
    """The plan that runs: at each poll and each step; zero when it has ended or paused."""
    CLUSTER = "cluster"
    """A cluster: at each sweep, and when what it counts has changed."""
    EVENT = "event"
    """Something that has happened: when it happens."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    :param name: as Airflow is given it.
    :param labels: in the order in which they follow the name where tags cannot be sent.
    """

    name: str
    kind: MetricKind
    unit: MetricUnit
    meaning: str
    labels: tuple[Label, ...] = (Label.CLUSTER,)

    @property
    def subject(self) -> MetricSubject:
        """What it is about."""
        if self.kind is MetricKind.COUNTER:
            return MetricSubject.EVENT
        return (
            MetricSubject.CLUSTER if self.name.startswith("rehome.cluster.") else MetricSubject.PLAN
        )


def _plan(name: str, unit: MetricUnit, meaning: str, *labels: Label) -> Metric:
    return Metric(f"rehome.plan.{name}", MetricKind.GAUGE, unit, meaning, (Label.CLUSTER, *labels))


def _cluster(name: str, unit: MetricUnit, meaning: str, *labels: Label) -> Metric:
    return Metric(
        f"rehome.cluster.{name}", MetricKind.GAUGE, unit, meaning, (Label.CLUSTER, *labels)
    )


def _counter(name: str, unit: MetricUnit, meaning: str, *labels: Label) -> Metric:
    return Metric(f"rehome.{name}", MetricKind.COUNTER, unit, meaning, (Label.CLUSTER, *labels))


FRESH_UNTIL = _plan(
    "fresh_until",
    MetricUnit.MOMENT,
    "Until when the other gauges of the plan can be believed: each poll moves it on, the plan's "
    "end or pause sets it to 0. The only metric that names a plan",
    Label.PLAN,
)
BYTES_TOTAL = _plan("bytes_total", MetricUnit.BYTES, "What the plan copies in all")
BYTES_LEFT = _plan("bytes_left", MetricUnit.BYTES, "What is not copied yet")
RATE = _plan(
    "rate",
    MetricUnit.BYTES_PER_S,
    "Measured over the last polls, of the whole plan; 0 before the second",
)
ENDS_AT = _plan("ends_at", MetricUnit.MOMENT, "When the last copy ends at this pace; 0 = not known")
WINDOW_END = _plan(
    "window_end", MetricUnit.MOMENT, "When nothing may be in flight any more; 0 = never"
)
MOVED_AT = _plan(
    "moved_at",
    MetricUnit.MOMENT,
    "When bytes or messages were last seen to move, or only another client's reassignment was "
    "waited for",
)
LAG_LARGEST = _plan(
    "lag_largest", MetricUnit.MESSAGES, "Messages that the replica farthest behind lacks"
)
LAG_SUM = _plan(
    "lag_sum", MetricUnit.MESSAGES, "Messages that all replicas in flight lack together"
)
MOVES_BY_STATE = _plan("moves", MetricUnit.COUNT, "Moves of the plan, by state", Label.STATE)
THROTTLE_ASKED = _plan(
    "throttle_asked",
    MetricUnit.BYTES_PER_S,
    "What was asked for, per broker and direction; 0 = not set yet. The same holds for the three "
    "that follow",
)
THROTTLE_TARGET = _plan(
    "throttle_target",
    MetricUnit.BYTES_PER_S,
    "What brokers are to deliver: less than asked under strain",
)
THROTTLE_SET = _plan("throttle_set", MetricUnit.BYTES_PER_S, "The rate that is set on the brokers")
THROTTLE_DELIVERED = _plan(
    "throttle_delivered",
    MetricUnit.BYTES_PER_S,
    "What the broker and direction that copied most delivered between the last two polls",
)
OUTSIDE_ISR = _plan(
    "strain_outside_isr",
    MetricUnit.COUNT,
    "Replicas of watched partitions on live brokers that are out of the ISR",
)
MESSAGES_BEHIND = _plan(
    "strain_messages_behind",
    MetricUnit.MESSAGES,
    "Messages that in-sync followers of watched partitions lack together",
)
BROKERS_SILENT = _plan(
    "brokers_silent", MetricUnit.COUNT, "Brokers that did not answer at the last poll"
)

BROKER_REASSIGNING = _plan(
    "broker_reassigning",
    MetricUnit.COUNT,
    "Partitions of the plan in flight that are copied to the broker, or from it (KIP-455's "
    "ReassigningPartitions). This and the two that follow: of each broker of the plan",
    Label.BROKER,
)
BROKER_BYTES_IN = _plan(
    "broker_bytes_in",
    MetricUnit.BYTES_PER_S,
    "What the plan's copies brought to the broker over the network, by the polls of the last "
    "minute (KIP-455's ReassignmentBytesInPerSec). Not sent while it is not known",
    Label.BROKER,
)
BROKER_BYTES_OUT = _plan(
    "broker_bytes_out",
    MetricUnit.BYTES_PER_S,
    "What the plan's copies read from the broker, likewise (KIP-455's ReassignmentBytesOutPerSec)",
    Label.BROKER,
)

PLAN_HURTING = _plan(
    "hurts",
    MetricUnit.COUNT,
    "Whether something of the kind keeps the plan from going on as it should: 1 or 0",
    Label.KIND,
)

SNAPSHOT_TAKEN_AT = _cluster(
    "snapshot_taken_at", MetricUnit.MOMENT, "When the newest snapshot was taken"
)
SWEPT_AT = _cluster("swept_at", MetricUnit.MOMENT, "When the sweep last checked the cluster")
PLANS_BY_STATE = _cluster("plans", MetricUnit.COUNT, "Plans in the ledger, by state", Label.STATE)
PLANS_ORPHANED = _cluster(
    "plans_orphaned", MetricUnit.COUNT, "Plans that are running while their run sends no heartbeat"
)
THROTTLES_OWED = _cluster(
    "throttles_owed", MetricUnit.COUNT, "Settings of plans that have ended, which may still be set"
)
THROTTLES_FOREIGN = _cluster(
    "throttles_foreign",
    MetricUnit.COUNT,
    "Throttles that no plan has set: Rehome leaves them alone",
)
ALERT_UNSENT_SINCE = _cluster(
    "alert_unsent_since",
    MetricUnit.MOMENT,
    "Since when the oldest alert of any cluster waits that has not reached every channel, by the "
    "newest sweep; 0 = none does",
)
OPEN_FINDINGS = _cluster(
    "findings",
    MetricUnit.COUNT,
    "Findings of watch_clusters that are open, by kind and its severity; of each judged snapshot",
    Label.KIND,
    Label.SEVERITY,
)
PLAN_JOB_S = _cluster(
    "plan_job_s",
    MetricUnit.SECONDS,
    "How long the newest Spark job took that gates and plans, whatever it ended with",
)

MOVES_ADMITTED = _counter(
    "moves_admitted", MetricUnit.COUNT, "Moves that the controller has accepted"
)
MOVES_ENDED = _counter(
    "moves_ended", MetricUnit.COUNT, "Moves that have ended, by state", Label.STATE
)
BYTES_MOVED = _counter("bytes_moved", MetricUnit.BYTES, "Bytes that polls have seen being copied")
THROTTLE_CHANGES = _counter(
    "throttle_changes", MetricUnit.COUNT, "Rates that were set on brokers, by reason", Label.REASON
)
ERRORS = _counter(
    "errors",
    MetricUnit.COUNT,
    "What went wrong at a poll or a step: refused (a broker or the controller refused a move), "
    "cluster_away, ledger_away, throttle_unread",
    Label.KIND,
)
GATES_FAILED = _counter(
    "gates_failed", MetricUnit.COUNT, "Gates that did not pass: snapshot, history, plan", Label.GATE
)

METRICS: tuple[Metric, ...] = (
    *(FRESH_UNTIL, BYTES_TOTAL, BYTES_LEFT, RATE, ENDS_AT, WINDOW_END, MOVED_AT),
    *(LAG_LARGEST, LAG_SUM, MOVES_BY_STATE),
    *(THROTTLE_ASKED, THROTTLE_TARGET, THROTTLE_SET, THROTTLE_DELIVERED),
    *(OUTSIDE_ISR, MESSAGES_BEHIND, BROKERS_SILENT, PLAN_HURTING),
    *(BROKER_REASSIGNING, BROKER_BYTES_IN, BROKER_BYTES_OUT),
    *(
        SNAPSHOT_TAKEN_AT,
        SWEPT_AT,
        PLANS_BY_STATE,
        PLANS_ORPHANED,
        THROTTLES_OWED,
        THROTTLES_FOREIGN,
        ALERT_UNSENT_SINCE,
    ),
    *(OPEN_FINDINGS, PLAN_JOB_S),
    *(MOVES_ADMITTED, MOVES_ENDED, BYTES_MOVED, THROTTLE_CHANGES, ERRORS, GATES_FAILED),
)
"""In the order in which people read them."""


def safe(value: str) -> str:
    """A label's value as every backend takes it: what separates names or tags becomes ``_``."""
    return _NOT_IN_NAMES.sub("_", value)


def dotted_name(metric: Metric, labels: Mapping[Label, str]) -> str:
    """The name with its labels' values, for StatsD without tags: ``rehome.plan.moves.ID.done``."""
    return ".".join((metric.name, *(safe(labels[label]) for label in metric.labels)))


def in_prometheus(metric: Metric, prefix: str = STATSD_PREFIX) -> str:
    """The name that Prometheus knows it by, through StatsD's exporter and OpenTelemetry alike."""
    name = f"{prefix}.{metric.name}".replace(".", "_")
    return f"{name}_total" if metric.kind is MetricKind.COUNTER else name
