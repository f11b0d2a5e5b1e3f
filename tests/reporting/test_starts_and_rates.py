"""What a report says of each start, and of the rates while the plan ran."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from rehome.domain.kafka import TopicPartition
from rehome.domain.run.flows import RateChange, RateReason
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.records import Reassignment
from rehome.reporting.charts.rate_chart import rate_picture
from rehome.reporting.report import render
from tests.reporting.pages import Page
from tests.reporting.reported_plans import (
    MB,
    START,
    carried_out,
    good_end,
    with_evidence,
)

START_OF_ONE = Reassignment(
    "9f0c6d",
    TopicPartition("orders", 0),
    "topic-id",
    START,
    START,
    None,
    (4, 1),
    (2, 1),
    2 * MB,
    START + timedelta(seconds=30),
    MoveState.CANCELLED,
    "",
)


def test_each_start_is_reported_with_what_kip_240_wants_known_of_it() -> None:
    flying = replace(START_OF_ONE, reassignment_id="77aa01", first_leader=4, ended_at=None)
    starts = (START_OF_ONE, replace(flying, outcome=None))
    text = Page(render(replace(good_end(), reassignments=starts))).text
    first = "9f0c6d orders-0 2026-03-01 22:00:00 none 4, 1 → 2, 1 2 MB/s 2026-03-01 22:00:30"
    assert f"{first} cancelled" in text
    assert "77aa01 orders-0 2026-03-01 22:00:00 4 4, 1 → 2, 1 2 MB/s in flight" in text
    assert "Reassignments" not in Page(render(good_end())).text


def test_rates_are_shown_with_what_they_delivered_and_why() -> None:
    reported = carried_out(PlanState.DONE, "every move is done", *[MoveState.DONE] * 3)
    changes = (
        RateChange(START, 2_100_000, 2_000_000, 2_000_000, RateReason.SET_UP, "set up"),
        RateChange(
            START + timedelta(seconds=40),
            2_300_000,
            2_000_000,
            2_000_000,
            RateReason.RAISED,
            "broker 3 receives <less>",
            1_850_000.0,
        ),
    )
    polls = tuple((START + timedelta(seconds=5 * n), 1_900_000.0) for n in range(1, 20))
    html = render(replace(with_evidence(reported, rates=changes), delivered=polls))
    assert "raised: broker 3 receives &lt;less&gt;" in html
    assert "1.85 MB/s" in html
    picture = rate_picture(replace(with_evidence(reported, rates=changes), delivered=polls))
    assert picture is not None
    assert (picture.span_s, round(picture.top_bytes_per_s)) == (95.0, 2_530_000)
    (line,) = picture.delivered
    assert line.endswith("1000.0,49.8")
    assert rate_picture(reported) is None
    assert 'id="rates"' not in render(reported)
