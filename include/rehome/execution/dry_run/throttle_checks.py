"""Checks of throttles: the same changes that will be made, sent with validate_only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource, DescribedConfigs
from rehome.domain.kafka import BrokerError, BrokerId
from rehome.domain.kafka_limits import LEAST_RATE
from rehome.domain.plan.plan import Plan
from rehome.domain.run.findings import Finding, Severity
from rehome.domain.run.run_policy import Policy
from rehome.domain.text import bytes_text, count_text
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
    rate_name,
    split,
)
from rehome.execution.throttle.ownership.marks import DEFAULT, Before

_CHECK = "throttle"


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
) -> Iterator[Finding]:
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
        yield Finding(
            Severity.ERROR,
            _CHECK,
            "throttle",
            f"{rate_bytes_per_s} bytes per second would never move anything",
            "Give a rate above the inflow of the partitions. Was it left to auto, the brokers have "
            "nothing to spare: set broker_capacity_bytes_per_s where they can take more.",
        )
        return
    yield from _of_single_brokers(plan, now, own, own.brokers if named is None else named)
    changes: list[ConfigChange] = []
    yield from _rates(plan, now, found, changes)
    if marked:
        yield from _not_put_back(changes, cluster)
    yield from _lists(plan, cluster, changes, ours)
    for resource, error in cluster.alter_configs(changes, validate_only=True).items():
        if error is not None:
            yield _refused(resource, error)


def _of_single_brokers(
    plan: Plan, now: ClusterState, own: BrokerRates, named: Collection[BrokerId]
) -> Iterator[Finding]:
    """Rates of brokers that there are not, that would let nothing through, or that mean nothing."""
    for (direction, broker), rate in own.by_key().items():
        if rate < LEAST_RATE:
            yield Finding(
                Severity.ERROR,
                _CHECK,
                f"broker {broker}",
                f"{rate} bytes per second ({direction}) would never move anything",
                f"Give it {LEAST_RATE} bytes per second at least.",
            )
    for broker in own.brokers:
        if broker in plan.brokers or broker not in named:
            continue
        there = broker in now.cluster.brokers
        yield Finding(
            Severity.INFO if there else Severity.ERROR,
            _CHECK,
            f"broker {broker}",
            "has a throttle of its own by throttle_by_broker, and moves nothing in this plan"
            if there
            else "has a throttle of its own by throttle_by_broker, and is no broker of the cluster "
            "that is alive",
            "It is not set there." if there else "Correct the id, or leave it out.",
        )


def without_throttle(policy: Policy) -> Iterator[Finding]:
    """What a plan means that sets no throttle: said, whatever else is found."""
    at_once = count_text(policy.max_moves_per_broker, "move")
    yield Finding(
        Severity.WARNING,
        "throttle",
        "plan",
        f"it runs without a throttle: {at_once} at once for each broker and direction, and "
        f"{count_text(policy.max_partitions_in_flight, 'partition')} in all, are the only limit of "
        "the copies",
        "Clients of these brokers may suffer. Choose fewer moves at once (max_moves_per_broker), "
        "or have a throttle set where that is allowed.",
    )


def _refused(resource: ConfigResource, error: BrokerError) -> Finding:
    return Finding(
        Severity.ERROR,
        _CHECK,
        named(resource),
        f"its throttle would be refused: {error.name}: {error.message}",
        "See docs/security.md for rights; correct the present configuration.",
        error.code,
    )


def _rates(
    plan: Plan, now: ClusterState, found: RatesFound, changes: list[ConfigChange]
) -> Iterator[Finding]:
    """The rates that would be set, and those of other clients that would hold instead."""
    for resource, error in found.unreadable.items():
        yield _unreadable(resource, error)
    for choice in found.choices:
        if choice.holds is not None:
            loads = _loads(plan, now, choice.key)
            bound = None if choice.resource == DEFAULT else int(choice.resource.name)
            size = max(loads.values(), default=0) if bound is None else loads[bound]
            yield _holds(choice.resource, choice.key, choice.holds, size)
        if choice.wanted is not None:
            set_it = (choice.resource, choice.key, ConfigOperation.SET, choice.wanted)
            changes.append(ConfigChange(*set_it))


def _not_put_back(changes: Sequence[ConfigChange], cluster: ClusterPort) -> Iterator[Finding]:
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
            yield Finding(
                Severity.WARNING,
                _CHECK,
                named(resource),
                f"its {rate_name(key)} of {before} B/s is replaced, and stays so when the plan has "
                f"ended: the brokers refuse {probe.key}: {refused.name}: {refused.message}",
                "Set then what is wanted; until that it is owed. Or have the brokers' policy allow "
                "keys on their default that begin with rehome.",
                refused.code,
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


def _holds(resource: ConfigResource, key: str, rate_bytes_per_s: int, size_bytes: int) -> Finding:
    stops = rate_bytes_per_s <= 0
    whose = "of the busiest broker pass" if resource == DEFAULT else "pass through it"
    expect = (
        "nothing would ever move" if stops else f"{bytes_text(size_bytes)} {whose} at that rate"
    )
    return Finding(
        Severity.ERROR if stops else Severity.WARNING,
        _CHECK,
        named(resource),
        f"already has {rate_name(key)} {bytes_text(rate_bytes_per_s)}/s, set by another client, "
        f"and the plan leaves it there: {expect}",
        "If that rate is a leftover (sweep_throttles names those), remove it and trigger a new "
        "run. Else ask its owner to raise it.",
    )


def _unreadable(resource: ConfigResource, error: BrokerError) -> Finding:
    return Finding(
        Severity.ERROR,
        _CHECK,
        named(resource),
        f"its present throttle cannot be read: {error.name}: {error.message}",
        "Mend what the broker names, then trigger a new run: a throttle is only set where the one "
        "before it is known.",
        error.code,
    )


def _lists(
    plan: Plan,
    cluster: ClusterPort,
    changes: list[ConfigChange],
    ours: SetByPlans,
) -> Iterator[Finding]:
    wanted = list_items(plan.moves)
    resources = sorted({ConfigResource.topic(topic) for topic, _ in wanted})
    present: DescribedConfigs = cluster.describe_configs(resources, LISTS) if resources else {}
    for (topic, key), items in wanted.items():
        resource = ConfigResource.topic(topic)
        configs = present[resource]
        if isinstance(configs, BrokerError):
            if key == LISTS[0]:
                yield _unreadable(resource, configs)
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
) -> Iterator[Finding]:
    """A list that other clients' items fill, so that moves could never be put on it."""
    room = LIST_LIMIT - len(",".join(kept))
    of_topic = [move for move in plan.moves if move.partition.topic == resource.name]
    without = 0
    for move in of_topic:
        items = list_items([move]).get((resource.name, key), ())
        missing = [item for item in items if item not in kept]
        without += bool(missing) and len(",".join(["", *missing])) > room
    if without:
        yield Finding(
            Severity.ERROR,
            _CHECK,
            named(resource),
            f"other clients' items fill its {key}: {count_text(len(kept), 'item')}, which leave "
            f"room for {max(room, 0)} of {LIST_LIMIT} characters, so "
            f"{count_text(without, 'move')} could not be throttled",
            "Have their owner take items off that list that no reassignment in flight needs.",
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
