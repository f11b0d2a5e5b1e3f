"""Pictures of a plan: each broker before and after, and the copy over time.

Plain numbers for the template to draw with HTML and inline SVG: crisp at every size, legible in
light and dark, a few hundred bytes each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from rehome.domain.plan.figures import ResourceBalance
from rehome.domain.plan.summary import BrokerLoad
from rehome.domain.time_range import TimeRange
from rehome.reporting.charts.gaps import stretches, thin_out
from rehome.reporting.charts.rate_chart import POINTS_SHOWN
from rehome.reporting.data import ReportData

BROKERS_DRAWN = 40
CURVE_WIDTH, CURVE_HEIGHT = 1000, 200


@dataclass(frozen=True, slots=True)
class Bar:
    """One broker's bars, as percent of the fullest broker before or after.

    :param band: left edge and width of the band it was to end in; None where it had none.
    """

    load: BrokerLoad
    before_percent: float
    after_percent: float
    band: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class BrokerPicture:
    """Brokers with what they hold before and after.

    :param bars: ascending by id; of a large cluster, the brokers that change most.
    :param left_out: brokers that are not shown.
    """

    bars: tuple[Bar, ...]
    left_out: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Bytes copied over time, in the coordinates of a 1000 x 200 SVG; 0 bytes lie at the bottom.

    :param lines: points of the measured polylines: one ends where polls have stopped.
    :param areas: the same, closed along the bottom.
    :param predicted: corners of the predicted range; empty when nothing was predicted.
    :param span_s: seconds from the left edge to the right.
    :param bytes_total: bytes from the bottom to the top.
    """

    lines: tuple[str, ...]
    areas: tuple[str, ...]
    predicted: str
    span_s: float
    bytes_total: int


def broker_picture(
    loads: Sequence[BrokerLoad], stored: ResourceBalance | None = None
) -> BrokerPicture:
    """Bars for the brokers of a plan's summary.

    :param stored: the balance of bytes, aligned with ``loads``; its bands are drawn.
    """
    bands: dict[int, tuple[int, int]] = {}
    if stored is not None and stored.low:
        sides = zip(loads, stored.low, stored.high, strict=True)
        bands = {load.broker: (low, high) for load, low, high in sides}
    sizes = [max(b.size_bytes_before, b.size_bytes_after) for b in loads]
    most = max(sizes, default=0)
    by_change = sorted(loads, key=lambda load: (-load.change_bytes, load.broker))
    shown = sorted(by_change[:BROKERS_DRAWN], key=lambda load: load.broker)
    bars = tuple(
        Bar(
            load,
            _percent(load.size_bytes_before, most),
            _percent(load.size_bytes_after, most),
            _band(*bands[load.broker], most) if load.broker in bands else None,
        )
        for load in shown
    )
    return BrokerPicture(bars, len(loads) - len(bars))


def _band(low: int, high: int, most: int) -> tuple[float, float]:
    left = min(_percent(low, most), 100.0)
    return left, round(min(_percent(high, most), 100.0) - left, 2)


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 2) if whole else 0.0


def progress_curve(data: ReportData) -> Curve | None:
    """Bytes copied against the prediction; None with fewer than two samples."""
    record, samples = data.record, data.samples
    if record.started_at is None or len(samples) < 2:
        return None
    start, total = record.started_at, max(sample.bytes_total for sample in samples)
    account = data.account
    expected = None if account.incomparable else account.predicted_of_all
    last_s = (samples[-1].sampled_at - start).total_seconds()
    span_s = max(last_s, expected.most_s if expected else 0.0)
    if span_s <= 0 or not total:
        return None
    readings = [(start, 0), *((sample.sampled_at, sample.bytes_done) for sample in samples)]
    drawn = [
        [(max(0.0, (at - start).total_seconds()) / span_s, done / total) for at, done in stretch]
        for stretch in thin_out(stretches(readings, itemgetter(0)), POINTS_SHOWN)
    ]
    return Curve(
        lines=tuple(" ".join(_point(*point) for point in points) for points in drawn),
        areas=tuple(
            " ".join(_point(*at) for at in ((points[0][0], 0), *points, (points[-1][0], 0)))
            for points in drawn
        ),
        predicted=_range(expected, span_s) if expected else "",
        span_s=span_s,
        bytes_total=total,
    )


def _range(expected: TimeRange, span_s: float) -> str:
    corners = (0.0, 0), (expected.least_s / span_s, 1), (expected.most_s / span_s, 1)
    return " ".join(_point(*corner) for corner in corners)


def _point(x: float, y: float) -> str:
    return f"{CURVE_WIDTH * x:.1f},{CURVE_HEIGHT * (1 - y):.1f}"
