"""The Grafana dashboard, made of the catalogue's names. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rehome.metrics import catalog
from rehome.metrics.catalog import STATSD_PREFIX, Label, Metric, MetricSubject, in_prometheus

_WIDTH, _HEIGHT, _PER_ROW = 8, 8, 3
TOP = 20
"""So many brokers a chart shows of a cluster at most."""
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Query:
    """One line, or several, of a panel. PromQL, in which ``{name}`` is replaced by a metric.

    :param expr: of the selected series, which ``{0}``, ``{1}``, … name.
    """

    expr: str
    metrics: tuple[Metric, ...]
    legend: str = "{{cluster}}"


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart.

    :param unit: Grafana's name of a unit.
    """

    title: str
    unit: str
    description: str
    queries: tuple[Query, ...]
    stacked: bool = False


def _of(metric: Metric, legend: str = "{{cluster}}") -> Query:
    return Query("{0}", (metric,), legend)


def _until(metric: Metric, legend: str = "{{cluster}}") -> Query:
    return Query("({0} > 0) - time()", (metric,), legend)


def _since(metric: Metric, legend: str = "{{cluster}}") -> Query:
    return Query("time() - ({0} > 0)", (metric,), legend)


def _grown(metric: Metric, legend: str) -> Query:
    return Query("increase({0}[$__rate_interval])", (metric,), legend)


def _largest(metric: Metric) -> Query:
    return Query(f"topk by(cluster) ({TOP}, {{0}})", (metric,), "{{cluster}} broker {{broker}}")


BY_STATE = "{{cluster}} {{state}}"
ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "The plan that runs",
        (
            Panel(
                "Copied",
                "percentunit",
                "Part of the plan's bytes that is copied.",
                (Query("1 - {0} / ({1} > 0)", (catalog.BYTES_LEFT, catalog.BYTES_TOTAL)),),
            ),
            Panel("Bytes left", "bytes", "What is not copied yet.", (_of(catalog.BYTES_LEFT),)),
            Panel(
                "Rate",
                "Bps",
                "Of the whole plan: by the last polls, and by the bytes that were counted.",
                (
                    _of(catalog.RATE, "{{cluster}} measured"),
                    Query(
                        "rate({0}[$__rate_interval])",
                        (catalog.BYTES_MOVED,),
                        "{{cluster}} counted",
                    ),
                ),
            ),
            Panel(
                "Time left",
                "s",
                "Until the last copy ends at this pace, and until the window closes. The window "
                "is missed where the first is longer.",
                (
                    _until(catalog.ENDS_AT, "{{cluster}} plan"),
                    _until(catalog.WINDOW_END, "{{cluster}} window"),
                ),
            ),
            Panel(
                "Moves by state",
                "short",
                "Each partition of the plan is one move.",
                (_of(catalog.MOVES_BY_STATE, BY_STATE),),
                stacked=True,
            ),
            Panel(
                "Nothing has moved for",
                "s",
                "Time since bytes or messages were last seen to move.",
                (_since(catalog.MOVED_AT),),
            ),
            Panel(
                "Lag",
                "short",
                "Messages that replicas in flight lack: the farthest one, and all together.",
                (
                    _of(catalog.LAG_LARGEST, "{{cluster}} largest"),
                    _of(catalog.LAG_SUM, "{{cluster}} sum"),
                ),
            ),
            Panel(
                "Moves started and ended",
                "short",
                "By the controller's answers, and by what polls found.",
                (
                    _grown(catalog.MOVES_ADMITTED, "{{cluster}} admitted"),
                    _grown(catalog.MOVES_ENDED, BY_STATE),
                ),
            ),
            Panel(
                "Which plan, until when its values hold",
                "dateTimeAsIso",
                "Each poll moves this moment on. All charts of this row show nothing after it.",
                (_of(catalog.FRESH_UNTIL, "{{cluster}} {{plan}}"),),
            ),
        ),
    ),
    (
        "Throttle and strain",
        (
            Panel(
                "Throttle",
                "Bps",
                "Per broker and direction: asked for, to be delivered, set, delivered.",
                (
                    _of(catalog.THROTTLE_ASKED, "{{cluster}} asked"),
                    _of(catalog.THROTTLE_TARGET, "{{cluster}} target"),
                    _of(catalog.THROTTLE_SET, "{{cluster}} set"),
                    Query(
                        "avg_over_time({0}[$__rate_interval])",
                        (catalog.THROTTLE_DELIVERED,),
                        "{{cluster}} delivered",
                    ),
                ),
            ),
            Panel(
                "Changes of the throttle",
                "short",
                "By reason: strain lowers the target, recovery raises it again.",
                (_grown(catalog.THROTTLE_CHANGES, "{{cluster}} {{reason}}"),),
            ),
            Panel(
                "Replicas out of the ISR",
                "short",
                "Of the partitions that are watched while the plan runs.",
                (_of(catalog.OUTSIDE_ISR),),
            ),
            Panel(
                "Messages that in-sync followers lack",
                "short",
                "Of the partitions that are watched while the plan runs.",
                (_of(catalog.MESSAGES_BEHIND),),
            ),
            Panel(
                "What keeps plans from going on",
                "short",
                "By kind, as the last poll has found it.",
                (_of(catalog.PLAN_HURTING, "{{cluster}} {{kind}}"),),
            ),
            Panel(
                "Brokers that did not answer",
                "short",
                "At the last poll.",
                (_of(catalog.BROKERS_SILENT),),
            ),
            Panel(
                "Errors",
                "short",
                "Moves that were refused, polls without the cluster or the ledger, throttles that "
                "could not be read.",
                (_grown(catalog.ERRORS, "{{cluster}} {{kind}}"),),
            ),
        ),
    ),
    (
        "Brokers of the plan",
        (
            Panel(
                "Partitions being reassigned, by broker",
                "short",
                f"In flight, copied to it or from it. Of each cluster the {TOP} largest.",
                (_largest(catalog.BROKER_REASSIGNING),),
            ),
            Panel(
                "Reassignment bytes in, by broker",
                "Bps",
                f"Over the network, by the polls of the last minute. The {TOP} largest.",
                (_largest(catalog.BROKER_BYTES_IN),),
            ),
            Panel(
                "Reassignment bytes out, by broker",
                "Bps",
                f"As a leader that is copied from. The {TOP} largest.",
                (_largest(catalog.BROKER_BYTES_OUT),),
            ),
        ),
    ),
    (
        "Clusters",
        (
            Panel(
                "Plans by state",
                "short",
                "All that the ledger knows.",
                (_of(catalog.PLANS_BY_STATE, BY_STATE),),
                stacked=True,
            ),
            Panel(
                "Throttles pending cleanup, and throttles of others",
                "short",
                "Settings of plans that have ended and may still be set; and those that no plan "
                "has set.",
                (
                    _of(catalog.THROTTLES_OWED, "{{cluster}} pending cleanup"),
                    _of(catalog.THROTTLES_FOREIGN, "{{cluster}} of others"),
                ),
            ),
            Panel(
                "Oldest alert that waits to be sent",
                "s",
                "Of any cluster. Each sweep tries again.",
                (_since(catalog.ALERT_UNSENT_SINCE),),
            ),
            Panel(
                "Findings",
                "short",
                "What watch_clusters has found and is open, by kind.",
                (_of(catalog.OPEN_FINDINGS, "{{cluster}} {{kind}}"),),
                stacked=True,
            ),
            Panel(
                "Plans without a run",
                "short",
                "They are running, and their run sends no heartbeat.",
                (_of(catalog.PLANS_ORPHANED),),
            ),
            Panel(
                "Age of the newest snapshot",
                "s",
                "A plan is only made on a snapshot that is young enough.",
                (_since(catalog.SNAPSHOT_TAKEN_AT),),
            ),
            Panel(
                "Time since the sweep",
                "s",
                "The sweep cleans up every ten minutes.",
                (_since(catalog.SWEPT_AT),),
            ),
            Panel(
                "Plan job",
                "s",
                "How long the newest one took, gates among it.",
                (_of(catalog.PLAN_JOB_S),),
            ),
            Panel(
                "Gates that did not pass",
                "short",
                "By gate: snapshot, history, plan.",
                (_grown(catalog.GATES_FAILED, "{{cluster}} {{gate}}"),),
            ),
        ),
    ),
)


def dashboard(prefix: str = STATSD_PREFIX) -> dict[str, Any]:
    """The dashboard as Grafana imports it."""
    return {
        "uid": "rehome",
        "title": "Rehome",
        "description": "Partition reassignments of Rehome. Made by bin/write_monitoring.py.",
        "tags": ["rehome", "kafka"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "timezone": "",
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "graphTooltip": 1,
        "annotations": {"list": []},
        "templating": {"list": list(_variables(prefix))},
        "panels": list(_panels(prefix)),
    }


def expression(query: Query, prefix: str = STATSD_PREFIX) -> str:
    """A query as PromQL, with the dashboard's variables.

    Series of a plan are shown only as long as its polls go on.
    """
    names = [in_prometheus(metric, prefix) + '{cluster=~"$cluster"}' for metric in query.metrics]
    filtered = query.expr.format(*names)
    if query.metrics[0].subject is not MetricSubject.PLAN or catalog.FRESH_UNTIL in query.metrics:
        return filtered
    fresh = f'{in_prometheus(catalog.FRESH_UNTIL, prefix)}{{plan=~"$plan"}} > time()'
    return f"({filtered}) and on(cluster) ({fresh})"


def _variables(prefix: str) -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    of_clusters = in_prometheus(catalog.SNAPSHOT_TAKEN_AT, prefix)
    of_plans = in_prometheus(catalog.FRESH_UNTIL, prefix)
    yield _values(Label.CLUSTER, f"label_values({of_clusters}, cluster)")
    yield _values(Label.PLAN, f'label_values({of_plans}{{cluster=~"$cluster"}}, plan)')


def _values(label: Label, query: str) -> dict[str, Any]:
    return {
        "name": label.value,
        "label": label.value.capitalize(),
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": label.value},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _panels(prefix: str) -> Iterator[dict[str, Any]]:
    number, top = 1, 0
    for title, panels in ROWS:
        place = {"x": 0, "y": top, "w": _WIDTH * _PER_ROW, "h": 1}
        row = {"type": "row", "title": title, "collapsed": False, "panels": []}
        yield {"id": number, **row, "gridPos": place}
        number, top = number + 1, top + 1
        for at, panel in enumerate(panels):
            down, across = divmod(at, _PER_ROW)
            corner = {"x": across * _WIDTH, "y": top + down * _HEIGHT}
            place = {**corner, "w": _WIDTH, "h": _HEIGHT}
            yield {"id": number, **_panel(panel, prefix), "gridPos": place}
            number += 1
        top += -(-len(panels) // _PER_ROW) * _HEIGHT


def _panel(panel: Panel, prefix: str) -> dict[str, Any]:
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
    if panel.stacked:
        custom |= {"fillOpacity": 60, "stacking": {"mode": "normal", "group": "A"}}
    return {
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "min": 0, "custom": custom},
            "overrides": [],
        },
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": DATASOURCE,
                "editorMode": "code",
                "expr": expression(query, prefix),
                "legendFormat": query.legend,
                "range": True,
            }
            for at, query in enumerate(panel.queries)
        ],
    }
