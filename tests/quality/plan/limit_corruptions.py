"""Ways to spoil plans that caps of brokers and broker sets bind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rehome.domain.actions import Action
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.request.limits import BrokerCaps, BrokerLimits, BrokerSet
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.facts.gate_input import Checked
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import both
from tests.quality.plan.cases import planned, with_move, with_moves, with_summary
from tests.quality.plan.checked_plans import plus
from tests.quality.plan.rule_names import (
    AT_END,
    ENDS_IN_SET,
    GIVES_UP,
    HOMELESS,
    LEAST_LED,
    LEFT_OUT,
    MID_MOVE,
    NAMED_ABOVE,
    OF_ITS_SET,
    SPREAD_1,
    WITHIN_CAPS,
)

FAST = BrokerSet(name="fast", topics=("orders*",), brokers=(0, 1, 2), exclusive=True)
RACKS = ["/a", "/b", "/a", "/a", "/b", "/b"]

UNEVEN = (MoveCause(CauseCode.UNEVEN_RACKS),)


def of(partition: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, partition)


def shop() -> Cluster:
    """Topics orders, on brokers 0 and 1, and audit, on brokers 3 and 4, of six in two racks."""
    disks = dict.fromkeys(range(6), (100_000, 90_000))
    return replace(
        both(
            cluster(RACKS, [(0, 1), (1, 0), (0, 1), (1, 0)], 1_000, topic="orders"),
            cluster(RACKS, [(3, 4), (4, 3), (3, 4), (4, 3)], 1_000, topic="audit"),
        ),
        disks=disks,
        bytes_in=dict.fromkeys((*map(of, range(4)), *(of(n, "audit") for n in range(4))), 10.0),
        bytes_out=dict.fromkeys((*map(of, range(4)), *(of(n, "audit") for n in range(4))), 20.0),
    )


def drained(caps: BrokerLimits | None = None, *, spoil: Cluster | None = None) -> Checked:
    """Broker 0 is drained: its replicas go to broker 2, the only other one of the set."""
    request = ReassignmentRequest(
        Action.DRAIN,
        brokers=(0,),
        broker_sets=(FAST,),
        caps=BrokerCaps(brokers={2: caps}) if caps else None,
    )
    return planned((spoil or shop()).snapshot(), request)


def repaired() -> Checked:
    """Partition 3 of orders lies on brokers 4 and 3, and comes into its set."""
    shop_ = shop()
    rows = {**shop_.replicas, of(3): (4, 3)}
    request = ReassignmentRequest(Action.REPAIR_RACKS, broker_sets=(FAST,))
    return planned(replace(shop_, replicas=rows).snapshot(), request)


def shut(**caps: int) -> Checked:
    """What was planned without caps, where broker 2 has one by now."""
    made = drained()
    limits = BrokerCaps(brokers={2: BrokerLimits(**caps)})
    return replace(made, request=replace(made.request, caps=limits))


def crowded() -> Checked:
    """Broker 1 has been above its cap of two replicas, and stays so."""
    request = ReassignmentRequest(
        Action.DRAIN,
        brokers=(3,),
        broker_sets=(FAST,),
        caps=BrokerCaps(brokers={1: BrokerLimits(replicas=2)}),
    )
    return planned(shop().snapshot(), request)


def led_by_its_set() -> Checked:
    """Every broker of the set is to lead one of orders: 0 and 1 do, 2 holds none and is named."""
    request = ReassignmentRequest(
        Action.BALANCE_LEADERS, broker_sets=(FAST,), min_leaders={"orders": 1}
    )
    return planned(shop().snapshot(), request)


def audit_onto(broker: int) -> Checked:
    partition, now = of(0, "audit"), (3, 4)
    moved = Move(
        partition,
        now,
        (broker, 4),
        1_000,
        MoveReason.RACK,
        in_sync=2,
        causes=UNEVEN,
    )
    return plus(repaired(), [replace(moved, current_log_dirs=("/data/3", "/data/4"))])


SOUND: dict[str, Callable[[], Checked]] = {
    "sound drain within a set": drained,
    "sound drain within caps": lambda: drained(
        BrokerLimits(replicas=4, leaders=2, bytes_in=40, bytes_out=40, disk_fraction=0.15)
    ),
    "sound repair of sets": repaired,
    "sound drain with another broker above its cap": crowded,
    "sound minimum of leaders within a set": led_by_its_set,
}

OF_LIMITS: dict[str, tuple[Callable[[], Checked], set[str]]] = {
    "a copy outside of the set of its topic": (
        lambda: with_move(drained(), of(0), target=(3, 1)),
        {OF_ITS_SET},
    ),
    "a copy of a topic of no set on a broker of an exclusive one": (
        lambda: audit_onto(2),
        {OF_ITS_SET, ENDS_IN_SET},
    ),
    "a copy that spreads worse over the racks of the set": (
        lambda: with_move(repaired(), of(3), target=(0, 2)),
        {SPREAD_1},
    ),
    "a partition of the set is left outside": (
        lambda: with_moves(repaired(), []),
        {LEFT_OUT, ENDS_IN_SET},
    ),
    "one replica of a partition is left outside": (
        lambda: with_move(repaired(), of(3), target=(4, 0)),
        {ENDS_IN_SET},
    ),
    "more replicas than the cap": (lambda: shut(replicas=3), {WITHIN_CAPS, NAMED_ABOVE}),
    "more leaders than the cap": (lambda: shut(leaders=1), {WITHIN_CAPS, NAMED_ABOVE}),
    "more bytes in than the cap": (lambda: shut(bytes_in=39), {WITHIN_CAPS, NAMED_ABOVE}),
    "more bytes out than the cap": (lambda: shut(bytes_out=39), {WITHIN_CAPS, NAMED_ABOVE}),
    "a fuller disk than the cap": (
        lambda: (
            lambda made: replace(
                made,
                request=replace(
                    made.request, caps=BrokerCaps(brokers={2: BrokerLimits(disk_fraction=0.13)})
                ),
            )
        )(drained()),
        {MID_MOVE, AT_END, HOMELESS},
    ),
    "a broker of the set leads less than min_leaders asks of it": (
        lambda: plus(
            led_by_its_set(),
            [
                Move(
                    *(of(n), (1, 0), (0, 1), 1_000, MoveReason.LEADER),
                    causes=UNEVEN,
                    current_log_dirs=("/data/1", "/data/0"),
                    in_sync=2,
                )
                for n in (1, 3)
            ],
        ),
        {GIVES_UP, LEAST_LED},
    ),
    "a broker that stays above its cap is not named": (
        lambda: with_summary(crowded(), infeasible=()),
        {NAMED_ABOVE},
    ),
}
