"""The benchmark of the API server: its hundred clients, and what it makes of its figures."""

from __future__ import annotations

from benchmarks.api_server import CLIENTS, COLUMNS, hostile, p99, result_of
from rehome.api.bounded import LARGEST_BODY_BYTES


def test_a_hundred_clients_send_all_that_is_hostile() -> None:
    kinds = hostile()
    assert sum(one.clients for one in kinds) == CLIENTS
    assert sum(len(one.body) > 10 * LARGEST_BODY_BYTES for one in kinds) >= 3
    assert {one.role for one in kinds} == {"", "viewer", "user"}


def test_a_row_has_the_medians_of_its_runs_and_all_answers() -> None:
    common = {"processor": 0.5, "longest": 12.0, "over": 0, "collection": 300.0}
    runs = [
        {"calm": calm, "attacked": attacked, "answers": {"401": 2, "cut off": 1}, **common}
        for calm, attacked in ((10.0, 30.0), (20.0, 20.0), (90.0, 900.0))
    ]
    row = result_of("now", runs)
    assert (row["calm_ms"], row["attacked_ms"], row["ratio"]) == (20.0, 30.0, 1.5)
    assert set(COLUMNS.values()) <= set(row)
    assert row["answers"] == "401: 6, cut off: 3"


def test_the_99th_percentile_is_what_two_of_two_hundred_exceed() -> None:
    assert p99([float(n) for n in range(200)]) == 197
