"""Queries of the dashboard: of the chosen clusters, and of plans only while they are polled."""

from __future__ import annotations

from monitoring.dashboard import Query, dashboard, expression
from rehome.metrics import catalog
from rehome.metrics.catalog import in_prometheus

FRESH = in_prometheus(catalog.FRESH_UNTIL)


def test_a_query_of_a_plan_shows_it_only_while_it_is_polled() -> None:
    left, total = (in_prometheus(metric) for metric in (catalog.BYTES_LEFT, catalog.BYTES_TOTAL))
    query = Query("1 - {0} / ({1} > 0)", (catalog.BYTES_LEFT, catalog.BYTES_TOTAL))
    assert expression(query) == (
        f'(1 - {left}{{cluster=~"$cluster"}} / ({total}{{cluster=~"$cluster"}} > 0))'
        f' and on(cluster) ({FRESH}{{plan=~"$plan"}} > time())'
    )


def test_a_query_of_a_cluster_is_shown_whatever_runs() -> None:
    taken_at = in_prometheus(catalog.SNAPSHOT_TAKEN_AT)
    query = Query("time() - {0}", (catalog.SNAPSHOT_TAKEN_AT,))
    assert expression(query) == f'time() - {taken_at}{{cluster=~"$cluster"}}'


def test_panels_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in dashboard()["panels"]]
    cells = [
        (place["x"] + x, place["y"] + y)
        for place in places
        for x in range(place["w"])
        for y in range(place["h"])
    ]
    assert len(cells) == len(set(cells))
