"""Numbers of the search's first phase: what brokers should end with, and which replicas leave."""

from __future__ import annotations

from dataclasses import dataclass

Inner = tuple[float, float, float]
"""Per resource, the fraction of its band that a broker's wanted load lies in."""


@dataclass(frozen=True, slots=True)
class ShedOptions:
    """What brokers should end with, and which domains are narrow.

    :param inner: fractions of bands that wanted loads lie in: the rest is slack, because replicas
        are whole.
    :param of_one_resource: the same if only one resource has bands.
    :param narrow: a broker is short if it can take less than this fraction of the rate that its
        missing bytes bring on average.
    :param narrow_domain_from: a domain is narrow if at least this fraction of its missing bytes is
        missing on brokers that are short.
    :param short_from: missing bytes, in shares, from which on a broker can be short.
    :param rate_margin: safety factor on the rate of the coldest replicas: not all of them fit.
    """

    inner: Inner = (0.98, 0.8, 0.8)
    of_one_resource: float = 0.985
    narrow: float = 0.6
    narrow_domain_from: float = 0.5
    short_from: float = 0.01
    rate_margin: float = 1.2


SHED = ShedOptions()


@dataclass(frozen=True, slots=True)
class BrokerShedOptions:
    """How a broker's replicas are chosen. Amounts are in shares of the broker.

    :param brought: rate that one share of received bytes usually brings: cold replicas are moved
        first.
    :param filled: how far above its share, towards the edge of its band, a broker's rate may be
        filled.
    :param weight_of_count: of the replica count against the rate when the coldest replicas leave.
    :param parts_of_slack: with further resources, parts of the slack that each pass may use.
    :param choice: multiple of what has to leave, from which is chosen.
    :param least_distance: what may be left after these passes.
    :param ordered_together: the largest replicas that are sorted in one batch; few are needed.
    :param replacement_passes: how often rate is given up for bytes that will bring rate.
    :param fitting_passes: the most rounds of filling a limit with replicas in one order.
    :param first_bytes: part of the bytes that leave at first, if other resources have bands.
    :param slack_of_count: part of the slack that bytes may use at first, in count and in further
        resources.
    :param slack_of_rate: the same in rate.
    :param size_of_rate: the least bytes that may leave with rate.
    :param few_bytes: bytes too many from which on some are taken back; the least that are worth
        freeing for others.
    :param room: part of the room in other resources that is used for that.
    :param gap_passes: parts of the slack that close the gap of bytes, one after the other: at
        first with the largest replicas, then with the coldest, or the largest of these.
    :param choice_of_gap: multiple of the gap, from which the largest of the coldest are chosen.
    :param least_gap: bytes that count as no gap, and may remain to be given up.
    :param wide_gap: bytes for which no slack of other resources is kept in the end.
    :param crowded: count too many to leave, from which on room for arriving bytes is made.
    :param room_per_lack: bytes of room per count and rate too few.
    :param most_room: the most such room.
    """

    brought: float = 0.6
    filled: float = 0.6
    weight_of_count: float = 0.5
    parts_of_slack: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4, 0.6)
    choice: float = 2.0
    least_distance: float = 1e-3
    ordered_together: int = 64
    replacement_passes: int = 2
    fitting_passes: int = 60
    first_bytes: float = 0.97
    slack_of_count: float = 0.3
    slack_of_rate: float = 0.05
    size_of_rate: float = 0.1
    few_bytes: float = 1e-4
    room: float = 0.5
    gap_passes: tuple[float, ...] = (0.05, 0.4, 0.9)
    choice_of_gap: float = 2.5
    least_gap: float = 1e-5
    wide_gap: float = 2e-3
    crowded: float = 0.01
    room_per_lack: float = 0.03
    most_room: float = 0.01


BROKER_SHED = BrokerShedOptions()
