"""Pictures of a plan: every broker against its band, rack to rack, the largest moves."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

import pytest

from rehome.domain.plan.figures import (
    LeaderMinimums,
    Link,
    ResourceBalance,
    TargetPrice,
    TopicBalance,
)
from rehome.domain.plan.summary import BrokerLoad
from rehome.reporting.charts.plan_charts import (
    HEIGHT,
    LARGEST,
    NUMBERED,
    TOP_PERCENT,
    WIDTH,
    LoadPicture,
    largest_moves,
    link_picture,
    load_pictures,
)
from rehome.reporting.charts.progress_charts import broker_picture
from rehome.reporting.data import ReportData
from rehome.reporting.report import render
from tests.reporting.pages import page
from tests.reporting.reported_plans import MB, dry_run_only, moves, plan_of

STORED = ResourceBalance("bytes", True, 0.1, (300, 60, 0), (108, 100, 150), (90,) * 3, (110,) * 3)
COUNTS = ResourceBalance("replicas", True, None, (3, 1, 0), (2, 1, 1))
UNKNOWN = ResourceBalance("bytes_in", False, None, (0, 0, 0), (0, 0, 0))


def reported(*resources: ResourceBalance, **values: Any) -> ReportData:
    data = dry_run_only()
    summary = replace(data.plan.summary, resources=resources, **values)
    return replace(data, plan=replace(data.plan, summary=summary))


def pictures(*resources: ResourceBalance) -> tuple[LoadPicture, ...]:
    return load_pictures(reported(*resources).plan.summary)


def dots(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"M([\d.]+),([\d.]+)h0", path)]


def points(line: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (point.split(",") for point in line.split())]


def test_brokers_are_drawn_by_load_before_with_the_band_around_the_share() -> None:
    (picture,) = pictures(STORED)
    before, after = points(picture.before), dots(picture.after)
    assert [x for x, _ in before] == pytest.approx([WIDTH / 6, WIDTH / 2, WIDTH * 5 / 6], abs=0.1)
    assert before[0][1] < before[1][1] < before[2][1]  # the fullest is highest
    share = {label: y for y, label in picture.grid}["share"]
    band = [y for _, y in points(picture.band)]
    assert min(band) < share < max(band)
    assert all(min(band) <= y <= max(band) for _, y in after)
    assert picture.range_before == pytest.approx((-100, 200))
    assert picture.range_after == pytest.approx((0, 50))


def test_a_broker_that_ends_outside_its_band_is_drawn_apart_and_counted() -> None:
    (picture,) = pictures(STORED)
    assert picture.outside_count == 1
    assert len(dots(picture.after)) == 2
    ((x, y),) = dots(picture.outside)
    assert x == pytest.approx(WIDTH * 5 / 6, abs=0.1)
    assert y < min(y for _, y in points(picture.band))
    html = render(reported(STORED))
    assert "1 broker outside" in html
    assert "1 broker outside" not in render(reported(replace(STORED, after=(108, 100, 92))))


def test_a_load_far_above_its_share_is_drawn_at_the_edge() -> None:
    (picture,) = pictures(STORED)
    assert picture.range_before[1] > TOP_PERCENT
    assert points(picture.before)[0][1] >= 0
    for line in (picture.before, picture.band):
        assert all(0 <= y <= HEIGHT and 0 <= x <= WIDTH for x, y in points(line))


def test_brokers_of_different_sizes_are_compared_by_their_shares() -> None:
    item = ResourceBalance("bytes", True, 0.1, (200, 100), (200, 100), (180, 90), (220, 110))
    (picture,) = pictures(item)
    assert len({y for _, y in dots(picture.after)}) == 1
    assert picture.range_after == pytest.approx((0, 0))


def test_a_resource_without_a_target_has_no_band_and_an_unknown_one_no_picture() -> None:
    counts, *others = pictures(COUNTS, UNKNOWN, replace(UNKNOWN, known=True))
    assert others == []
    assert (counts.band, counts.tolerance_percent, counts.outside_count) == ("", None, 0)
    assert counts.range_before == pytest.approx((-100, 125))


def test_a_thousand_brokers_fit_into_one_small_picture() -> None:
    load = tuple(range(1000))
    item = ResourceBalance("bytes", True, 0.02, load, (500,) * 1000, (490,) * 1000, (510,) * 1000)
    (picture,) = pictures(item)
    assert len(dots(picture.after)) == picture.brokers == 1000
    assert len(picture.before) + len(picture.after) + len(picture.band) < 80_000
    ys = sorted(y for y, _ in picture.grid)
    assert all(b - a >= 14 for a, b in itertools.pairwise(ys)), "labels do not overlap"


def test_links_are_a_row_per_sending_and_a_column_per_receiving_rack() -> None:
    picture = link_picture([Link("/a", "/b", 80), Link("/a", "/c", 20), Link("/b", "/b", 40)])
    assert picture is not None
    assert (picture.sources, picture.targets) == (("/a", "/b"), ("/b", "/c"))
    assert [[cell.size_bytes for cell in row] for row in picture.rows] == [[80, 20], [40, 0]]
    assert [[cell.strength for cell in row] for row in picture.rows] == [[1.0, 0.25], [0.5, 0.0]]
    assert picture.busiest_bytes == 80
    assert picture.numbered
    assert link_picture([]) is None
    many = [Link("/a", f"/r{number}", 1) for number in range(NUMBERED + 1)]
    crowded = link_picture(many)
    assert crowded is not None
    assert crowded.numbered is False


def test_the_largest_moves_come_first_and_those_that_copy_nothing_do_not() -> None:
    small, middle, large = (
        replace(move, size_bytes=size * MB) for move, size in zip(moves(3), (1, 2, 4), strict=True)
    )
    still = replace(large, target=large.current)
    assert [item.percent for item in largest_moves((small, middle, large))] == [100, 50, 25]
    assert [item.move for item in largest_moves((still, small))] == [small]
    assert len(largest_moves(moves(LARGEST + 5))) == LARGEST
    assert largest_moves(()) == ()


def test_the_bars_of_brokers_show_their_bands() -> None:
    loads = [BrokerLoad(b, 300, 100, 1, 1, 0, 0, 0, 0) for b in range(3)]
    picture = broker_picture(loads, STORED)
    assert picture.bars[0].band == pytest.approx((30, 110 / 3 - 30), abs=0.01)
    assert broker_picture(loads, COUNTS).bars[0].band is None
    assert broker_picture(loads).bars[0].band is None


def test_the_report_shows_what_was_proven_and_what_targets_cost() -> None:
    prices = (
        TargetPrice("bytes", 120 * MB, 3, "solved"),
        TargetPrice("replicas", 7 * MB, 9, "at_least"),
        TargetPrice("leaders", 0, 0, "free"),
    )
    data = reported(
        STORED,
        prices=prices,
        links=(Link("/a", "/b", 90 * MB),),
        bytes_across_racks=90 * MB,
        ratio_to_bound=1.04,
        planned_by="bytes only; no history",
    )
    text = page(data).text
    for part in (
        "at least 150 MB by any plan: 1.04 times that",
        "Planned by bytes only; no history",
        "120 MB",
        "saved by the same plan without it",
        "saved at least, by taking back what it alone asks for",
        "leadership moves without copies",
        "90 MB of 150 MB between the top level's branches",
        "the darkest is 90 MB",
        "Largest moves",
    ):
        assert part in text, part
    assert {"balance", "traffic"} <= set(page(data).ids)


def test_a_minimum_of_leaders_says_what_lacks_before_and_after_and_what_was_copied() -> None:
    price = TargetPrice("min_leaders", 3 * MB, 4, "solved")
    figures = LeaderMinimums(2, 9, 1, 3 * MB, 4)
    text = page(reported(STORED, min_leaders=figures, prices=(price,))).text
    assert "a minimum of leaders 3 MB 4" in text
    assert "of 2 topics: brokers lack 9 leaders before, 1 after; 4 replicas (3 MB) copied" in text
    text = page(reported(STORED, min_leaders=LeaderMinimums(1, 9, 0, 0, 0))).text
    assert "of 1 topic: brokers lack 9 leaders before, 0 after; nothing is copied for it" in text
    assert "minimum of leaders" not in page(reported(STORED)).text


def test_topics_that_are_spread_by_leaders_alone_are_not_reported_as_spread_by_replicas() -> None:
    spread = TopicBalance(0.1, 2, 5, 0, 3, 0)
    plain = reported(STORED, topics=spread)
    led = page(replace(plain, request={**plain.request, "topic_spread_of": "leaders"})).text
    assert "by leaders alone, each within one leader or 10 % of a broker's share: 5" in led
    assert "within one replica or 10 % of a broker's share, and leaders too: 5" in page(plain).text


def test_a_plan_that_its_budget_cut_off_is_compared_with_all_that_was_asked() -> None:
    text = page(reported(STORED, asked_bound_bytes=600 * MB, ratio_to_bound=0.25)).text
    bound = "at least 600 MB by any plan that does all that was asked"
    assert f"{bound}, which the budget does not pay for: 0.25 times that" in text


def test_a_plan_that_says_nothing_of_balance_has_no_empty_sections() -> None:
    bare = plan_of(replace(moves(1)[0], target=(1, 4)))
    data = replace(dry_run_only(), plan=bare, moves={})
    assert not {"balance", "traffic"} & set(page(data).ids)


def test_names_of_racks_are_escaped() -> None:
    html = render(reported(STORED, links=(Link("/<b>", '/"x"', 5),)))
    assert "<b>;" not in html
    assert "/&lt;b&gt;" in html
