"""Figures and notes on the spread of topics: how even, which are not, and why."""

from __future__ import annotations

from functools import partial

import numpy as np

from rehome.domain.array_types import CellCounts, Floats, Ints, Mask
from rehome.domain.plan.figures import TopicBalance
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.request.request import MAY_SHARE_A_BROKER
from rehome.domain.resources import Resource
from rehome.planning.model.layout import Layout
from rehome.planning.model.topic_bands import TopicBands, band, beyond


def topic_balance(layout: Layout, bands: TopicBands) -> TopicBalance | None:
    """Distance of topics to the bands of an even spread, before and after: of those with at least
    as many replicas as brokers; None if there are none.
    """
    bands = bands.even or bands
    large = np.append(~bands.few, False)
    if not large.any():
        return None
    before, after = (
        np.concatenate(
            [
                beyond(bands.counts(rows), bands.low, bands.high)[large],
                beyond(bands.leaders(rows), bands.led_low, bands.led_high)[large],
            ]
        )
        for rows in (layout.origin, layout.rows)
    )
    return TopicBalance(
        tolerance=bands.tolerance,
        topics=int(large.sum()),
        outside_before=int((before > 0).sum()),
        outside_after=int((after > 0).sum()),
        worst_before=int(before.max(initial=0)),
        worst_after=int(after.max(initial=0)),
    )


def missed_topics(
    layout: Layout,
    bands: TopicBands,
    brokers: Mask,
    receivers: Mask,
    *,
    cut_by_budget: bool = False,
    one_sided: bool = False,
) -> tuple[Infeasible, ...]:
    """Notes on topics for which some broker ends off its fair share by more than the tolerance: the
    broker that is furthest off, and the obstacle. The same for leaders.

    :param brokers: (B,) that take part; ``receivers``: those of them that should get their share.
        The others may keep what they held, and give down to their share.
    """
    counts, before = bands.counts(layout.rows)[:-1], bands.counts(layout.origin)[:-1]
    low, high = band(bands.fair, bands.tolerance)
    low = np.where(receivers, low, np.minimum(low, before)) * (not one_sided)
    high = np.where(receivers, high, np.maximum(high, before))
    low[bands.few] = 0
    high[bands.few] = np.maximum(high, before)[bands.few]
    moves_for_topics_alone = bands.even is None or receivers.any()
    may_share = bands.few | (not moves_for_topics_alone)
    high[may_share] = np.maximum(high, MAY_SHARE_A_BROKER)[may_share]
    off = beyond(counts, low, high) * brokers
    if bands.leaders_only:
        off[:] = 0
    even = bands.even or bands
    inside = beyond(counts, even.low[:-1], even.high[:-1]) * brokers == 0
    notes = []
    for t in np.flatnonzero(off.any(axis=1)).tolist():
        why = Obstacle.BUDGET if cut_by_budget else Obstacle.NO_MOVE
        if inside[t].all():
            why = Obstacle.SHIFTED_SHARE
        note = partial(_note, layout, bands, t, off[t], counts[t], bands.fair[t])
        notes.append(note(why, Resource.REPLICAS))
    led = bands.leaders(layout.rows)[:-1]
    bands_of_notes = bands.with_led_before(layout.origin, receivers)
    led_off = beyond(led, bands_of_notes.led_low[:-1], bands_of_notes.led_high[:-1]) * brokers
    led_share = _led_shares(bands.fair, led, brokers)
    for t in np.flatnonzero(led_off.any(axis=1)).tolist():
        note = partial(_note, layout, bands, t, led_off[t], led[t], led_share[t])
        notes.append(note(Obstacle.NO_LEADER_CHANGE, Resource.LEADERS))
    return tuple(notes)


def _led_shares(fair: Floats, led: CellCounts, brokers: Mask) -> Floats:
    """(T, B) what each broker should lead of each topic: as large a part as of its replicas."""
    led_here, replicas = ((of * brokers).sum(axis=1, keepdims=True) for of in (led, fair))
    shares: Floats = fair * led_here / np.maximum(replicas, 1e-9)
    return shares


def _note(
    layout: Layout,
    bands: TopicBands,
    topic: int,
    off: Ints,
    counts: Ints,
    share: Floats,
    why: Obstacle,
    resource: Resource,
) -> Infeasible:
    worst = int(off.argmax())
    return Infeasible(
        Subject(SubjectKind.TOPIC, layout.arrays.topics[int(bands.topics[topic])]),
        why,
        wanted=round(float(share[worst]), 2),
        nearest=float(counts[worst]),
        resource=resource,
        brokers=(int(layout.arrays.brokers.ids[worst]),),
        others=int((off > 0).sum()) - 1,
    )
