"""Checks of throttles: the same changes that will be made, sent with validate_only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource, DescribedConfigs
from rehome.domain.kafka import BrokerError, BrokerId
from rehome.domain.kafka_limits import LEAST_RATE
from rehome.domain.plan.plan import Plan
from rehome.domain.run.findings import Finding, Found, FoundKind, Severity
from rehome.domain.run.run_policy import Policy
from rehome.domain.text import count_text
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.rates_found import RatesFound
from rehome.execution.observation.move_status import relocating
from rehome.execution.throttle.configs import named, refuses_marks
from rehome.execution.throttle.foreign import SetByPlans
from rehome.execution.throttle.keys import (
    EVERY_REPLICA,
    FOLLOWER_RATE,
    LIST_LIMIT,
    LISTS,
    LOG_DIR_RATE,
    list_items,
    own_value,
    split,
)
from rehome.execution.throttle.ownership.marks import DEFAULT, Before

_CHECK = "throttle"


class ThrottleKind(FoundKind):
    """What is wrong with a plan's throttles."""

    STOPS_ALL = "stops_all", _CHECK, Severity.ERROR
    STOPS_ONE = "stops_one", _CHECK, Severity.ERROR
    OF_NO_BROKER = "of_no_broker", _CHECK, Severity.ERROR
    UNUSED = "unused", _CHECK, Severity.INFO
    NO_THROTTLE = "no_throttle", _CHECK, Severity.WARNING
    REFUSED = "refused", _CHECK, Severity.ERROR
    UNREADABLE = "unreadable", _CHECK, Severity.ERROR
    NOT_PUT_BACK = "not_put_back", _CHECK, Severity.WARNING
    HELD_AT_NOTHING = "held_at_nothing", _CHECK, Severity.ERROR
    HELD = "held", _CHECK, Severity.WARNING
    LIST_FULL = "list_full", _CHECK, Severity.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleFound(Found):
    """What is wrong with a throttle.

    :param key: of the config that it is about; ``before``: its value now; ``mark``: the
        key by which its owner would be known.
    :param rate_bytes_per_s: that would be set, or that holds instead; ``direction``: its.
    :param size_bytes: what would be copied at that rate, through one broker.
    :param of_default: whether all brokers without a rate of their own have it.
    :param items, room: entries of a list of replicas, and characters that are left in it.
    :param moves: that could not be throttled, or that run at once for a broker and direction.
    :param partitions: that may be in flight.
    """

    key: str = ""
    before: str = ""
    mark: str = ""
    rate_bytes_per_s: int = 0
    direction: str = ""
    size_bytes: int = 0
    of_default: bool = False
    items: int = 0
    room: int = 0
    moves: int = 0
    partitions: int = 0


def throttle_findings(
    plan: Plan,
    cluster: ClusterPort,
    now: ClusterState,
    rate_bytes_per_s: int,
    found: RatesFound,
    *,
    ours: SetByPlans,
    own: BrokerRates = NO_OWN_RATES,
    named: Collection[BrokerId] | None = None,
    marked: bool = True,
) -> Iterator[ThrottleFound]:
    """What a broker would refuse of the plan's throttles, and rates that hold instead of ours.

    A move that cannot be throttled would run without any limit, so that is an error. Kafka
    accepts a rate of 0, and nothing would ever move: refused here.

    :param found: the rates that brokers have now.
    :param ours: what plans have set and not taken back: it is taken off where it is in the way.
    :param own: rates of brokers that are to have one of their own.
    :param named: those of them that the run itself names; None = all. The others have it by the
        cluster's policy or targets, which count whichever brokers are alive, and move something.
    :param marked: Rehome sets it, with marks; False = others do, with files.
    """
    if rate_bytes_per_s <= 0:
        yield ThrottleFound(ThrottleKind.STOPS_ALL, "throttle", rate_bytes_per_s=rate_bytes_per_s)
        return
    yield from _of_single_brokers(plan, now, own, own.brokers if named is None else named)
    changes: list[ConfigChange] = []
    yield from _rates(plan, now, found, changes)
    if marked:
        yield from _not_put_back(changes, cluster)
    yield from _lists(plan, cluster, changes, ours)
    for resource, error in cluster.alter_configs(changes, validate_only=True).items():
        if error is not None:
            yield ThrottleFound(ThrottleKind.REFUSED, str(resource), error)


def _of_single_brokers(
    plan: Plan, now: ClusterState, own: BrokerRates, named: Collection[BrokerId]
) -> Iterator[ThrottleFound]:
    """Rates of brokers that there are not, that would let nothing through, or that mean nothing."""
    for (direction, broker), rate in own.by_key().items():
        if rate < LEAST_RATE:
            yield ThrottleFound(
                *(ThrottleKind.STOPS_ONE, f"broker {broker}"),
                rate_bytes_per_s=rate,
                direction=direction,
            )
    for broker in own.brokers:
        if broker not in plan.brokers and broker in named:
            there = broker in now.cluster.brokers
            kind = ThrottleKind.UNUSED if there else ThrottleKind.OF_NO_BROKER
            yield ThrottleFound(kind, f"broker {broker}")


def without_throttle(policy: Policy) -> Iterator[ThrottleFound]:
    """What a plan means that sets no throttle: said, whatever else is found."""
    yield ThrottleFound(
        *(ThrottleKind.NO_THROTTLE, "plan"),
        moves=policy.max_moves_per_broker,
        partitions=policy.max_partitions_in_flight,
    )


def _rates(
    plan: Plan, now: ClusterState, found: RatesFound, changes: list[ConfigChange]
) -> Iterator[ThrottleFound]:
    """The rates that would be set, and those of other clients that would hold instead."""
    for resource, error in found.unreadable.items():
        yield ThrottleFound(ThrottleKind.UNREADABLE, named(resource), error)
    for choice in found.choices:
        if choice.holds is not None:
            loads = _loads(plan, now, choice.key)
            bound = None if choice.resource == DEFAULT else int(choice.resource.name)
            size = max(loads.values(), default=0) if bound is None else loads[bound]
            stops = choice.holds <= 0
            yield ThrottleFound(
                ThrottleKind.HELD_AT_NOTHING if stops else ThrottleKind.HELD,
                named(choice.resource),
                key=choice.key,
                rate_bytes_per_s=choice.holds,
                size_bytes=size,
                of_default=choice.resource == DEFAULT,
            )
        if choice.wanted is not None:
            set_it = (choice.resource, choice.key, ConfigOperation.SET, choice.wanted)
            changes.append(ConfigChange(*set_it))


def _not_put_back(changes: Sequence[ConfigChange], cluster: ClusterPort) -> Iterator[ThrottleFound]:
    """Rates from before, where brokers refuse to keep marks of who has replaced them."""
    places = [(change.resource, change.key) for change in changes]
    if not places:
        return
    probe = ConfigChange(DEFAULT, Before(*places[0], None).name, ConfigOperation.SET, "1")
    refused = cluster.alter_configs([probe], validate_only=True)[DEFAULT]
    if refused is None or not refuses_marks(refused):
        return
    found = cluster.describe_configs([r for r, _ in places], [key for _, key in places])
    for resource, key in places:
        configs = found[resource]
        before = None if isinstance(configs, BrokerError) else own_value(resource, configs.get(key))
        if before is not None:
            yield ThrottleFound(
                *(ThrottleKind.NOT_PUT_BACK, named(resource), refused),
                key=key,
                before=before,
                mark=probe.key,
            )


def _loads(plan: Plan, now: ClusterState, key: str) -> Counter[BrokerId]:
    """Bytes that the rate would slow, by broker."""
    loads: Counter[BrokerId] = Counter()
    for move in plan.moves:
        size, leader = now.size_bytes(move), now.leader(move)
        if key == LOG_DIR_RATE:
            loads.update(dict.fromkeys(relocating(move), size))
        elif key == FOLLOWER_RATE:
            loads.update(dict.fromkeys(move.adding, size))
        elif leader is not None:
            loads[leader] += size * len(move.adding)
    return loads


def _lists(
    plan: Plan,
    cluster: ClusterPort,
    changes: list[ConfigChange],
    ours: SetByPlans,
) -> Iterator[ThrottleFound]:
    wanted = list_items(plan.moves)
    resources = sorted({ConfigResource.topic(topic) for topic, _ in wanted})
    present: DescribedConfigs = cluster.describe_configs(resources, LISTS) if resources else {}
    for (topic, key), items in wanted.items():
        resource = ConfigResource.topic(topic)
        configs = present[resource]
        if isinstance(configs, BrokerError):
            if key == LISTS[0]:
                yield ThrottleFound(ThrottleKind.UNREADABLE, named(resource), configs)
            continue
        there = split(own_value(resource, configs.get(key)))
        if EVERY_REPLICA in there:
            continue  # it covers ours already
        text = ",".join(items)
        if len(",".join([*there, text])) <= LIST_LIMIT:
            changes.append(ConfigChange(resource, key, ConfigOperation.APPEND, text))
        else:  # set in parts, as moves start
            kept = [item for item in there if item not in ours.get((resource, key), ())]
            yield from _no_room(plan, resource, key, kept)


def _no_room(
    plan: Plan, resource: ConfigResource, key: str, kept: Sequence[str]
) -> Iterator[ThrottleFound]:
    """A list that other clients' items fill, so that moves could never be put on it."""
    room = LIST_LIMIT - len(",".join(kept))
    of_topic = [move for move in plan.moves if move.partition.topic == resource.name]
    without = 0
    for move in of_topic:
        items = list_items([move]).get((resource.name, key), ())
        missing = [item for item in items if item not in kept]
        without += bool(missing) and len(",".join(["", *missing])) > room
    if without:
        yield ThrottleFound(
            *(ThrottleKind.LIST_FULL, named(resource)),
            key=key,
            items=len(kept),
            room=max(room, 0),
            moves=without,
        )


def partition_findings(
    cluster: ClusterPort,
    totals: Mapping[str, int],
    assignments: Mapping[str, Sequence[Sequence[BrokerId]]] | None = None,
) -> Iterator[Finding]:
    """What the controller would refuse of new partition counts, by CreatePartitions' own
    validate_only.

    :param totals: topic → number of partitions it is to have.
    :param assignments: replicas of its new partitions, in order of partition.
    """
    verdicts = cluster.create_partitions(totals, assignments, validate_only=True)
    for topic, error in verdicts.items():
        if error is not None:
            yield Finding(
                Severity.ERROR,
                "partitions",
                topic,
                f"{count_text(totals[topic], 'partition')} would be refused: "
                f"{error.name}: {error.message}",
                "Correct the number; partitions can only be added.",
                error.code,
            )
