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
from rehome.domain.request.request import Cordon, ReassignmentRequest
from rehome.domain.run.findings import Finding
from rehome.domain.run.run_policy import Policy
from rehome.execution.admission.slots import Direction
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.rates.rates_found import RatesFound
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding
from rehome.execution.dry_run.words.worded import put_in_words
from rehome.execution.observation.move_status import relocating
from rehome.execution.throttle.configs import refuses_marks
from rehome.execution.throttle.cordon import cordon_change, unable_to_cordon
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


def throttle_findings(
    plan: Plan,
    cluster: ClusterPort,
    now: ClusterState,
    rate_bytes_per_s: int,
    rates: RatesFound,
    *,
    ours: SetByPlans,
    own: BrokerRates = NO_OWN_RATES,
    run_brokers: Collection[BrokerId] | None = None,
    marked: bool = True,
) -> Iterator[TypedFinding]:
    """What a broker would refuse of the plan's throttles, and rates that hold instead of ours.

    A move that cannot be throttled would run without any limit, so that is an error. Kafka
    accepts a rate of 0, and nothing would ever move: refused here.

    :param rates: the rates that brokers have now.
    :param ours: what plans have set and not taken back: it is taken off where it is in the way.
    :param own: rates of brokers that are to have one of their own.
    :param run_brokers: those of them that the run itself names; None = all. The others have it
        by the cluster's policy or targets, which count whichever brokers are alive, and move
        something.
    :param marked: Rehome sets it, with marks; False = others do, with files.
    """
    if rate_bytes_per_s <= 0:
        yield TypedFinding(
            FoundKind.THROTTLE_STOPS_ALL, "throttle", rate_bytes_per_s=rate_bytes_per_s
        )
        return
    yield from _of_single_brokers(
        plan, now, own, own.brokers if run_brokers is None else run_brokers
    )
    changes: list[ConfigChange] = []
    yield from _rates(plan, now, rates, changes)
    if marked:
        yield from _not_put_back(changes, cluster)
    yield from _lists(plan, cluster, changes, ours)
    for resource, error in cluster.alter_configs(changes, validate_only=True).items():
        if error is not None:
            yield TypedFinding(FoundKind.THROTTLE_REFUSED, str(resource), error)


def _of_single_brokers(
    plan: Plan, now: ClusterState, own: BrokerRates, run_brokers: Collection[BrokerId]
) -> Iterator[TypedFinding]:
    """Rates of brokers that there are not, that would let nothing through, or that mean nothing."""
    for (direction, broker), rate in own.by_key().items():
        if rate < LEAST_RATE:
            yield TypedFinding(
                *(FoundKind.THROTTLE_STOPS_BROKER, f"broker {broker}"),
                rate_bytes_per_s=rate,
                direction=Direction(direction),
            )
    for broker in own.brokers:
        if broker not in plan.brokers and broker in run_brokers:
            there = broker in now.cluster.brokers
            kind = FoundKind.THROTTLE_UNUSED if there else FoundKind.THROTTLE_OF_NO_BROKER
            yield TypedFinding(kind, f"broker {broker}")


def without_throttle(policy: Policy) -> Iterator[TypedFinding]:
    """What a plan means that sets no throttle: said, whatever else is found."""
    yield TypedFinding(
        *(FoundKind.NO_THROTTLE, "plan"),
        moves=policy.max_moves_per_broker,
        count=policy.max_partitions_in_flight,
    )


def _rates(
    plan: Plan, now: ClusterState, rates: RatesFound, changes: list[ConfigChange]
) -> Iterator[TypedFinding]:
    """The rates that would be set, and those of other clients that would hold instead."""
    for resource, error in rates.unreadable.items():
        yield TypedFinding(FoundKind.THROTTLE_UNREADABLE, str(resource), error)
    for choice in rates.choices:
        if choice.holds is not None:
            loads = _loads(plan, now, choice.key)
            bound = None if choice.resource == DEFAULT else int(choice.resource.name)
            size = max(loads.values(), default=0) if bound is None else loads[bound]
            stops = choice.holds <= 0
            yield TypedFinding(
                FoundKind.OTHERS_RATE_STOPS if stops else FoundKind.OTHERS_RATE_HOLDS,
                str(choice.resource),
                key=choice.key,
                rate_bytes_per_s=choice.holds,
                size_bytes=size,
                brokers=() if bound is None else (bound,),
            )
        if choice.rate is not None:
            set_it = (choice.resource, choice.key, ConfigOperation.SET, choice.rate)
            changes.append(ConfigChange(*set_it))


def _not_put_back(changes: Sequence[ConfigChange], cluster: ClusterPort) -> Iterator[TypedFinding]:
    """Rates from before, where brokers refuse to keep marks of who has replaced them."""
    places = [(change.resource, change.key) for change in changes]
    if not places:
        return
    probe = ConfigChange(DEFAULT, Before(*places[0], None).name, ConfigOperation.SET, "1")
    refusal = cluster.alter_configs([probe], validate_only=True)[DEFAULT]
    if refusal is None or not refuses_marks(refusal):
        return
    answers = cluster.describe_configs([r for r, _ in places], [key for _, key in places])
    for resource, key in places:
        configs = answers[resource]
        before = None if isinstance(configs, BrokerError) else own_value(resource, configs.get(key))
        if before is not None:
            yield TypedFinding(
                *(FoundKind.RATE_NOT_PUT_BACK, str(resource), refusal),
                key=key,
                value=before,
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
) -> Iterator[TypedFinding]:
    items_by_list = list_items(plan.moves)
    resources = sorted({ConfigResource.topic(topic) for topic, _ in items_by_list})
    present: DescribedConfigs = cluster.describe_configs(resources, LISTS) if resources else {}
    for (topic, key), items in items_by_list.items():
        resource = ConfigResource.topic(topic)
        configs = present[resource]
        if isinstance(configs, BrokerError):
            if key == LISTS[0]:
                yield TypedFinding(FoundKind.THROTTLE_UNREADABLE, str(resource), configs)
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
) -> Iterator[TypedFinding]:
    """A list that other clients' items fill, so that moves could never be put on it."""
    room = LIST_LIMIT - len(",".join(kept))
    of_topic = [move for move in plan.moves if move.partition.topic == resource.name]
    without = 0
    for move in of_topic:
        items = list_items([move]).get((resource.name, key), ())
        missing = [item for item in items if item not in kept]
        without += bool(missing) and len(",".join(["", *missing])) > room
    if without:
        yield TypedFinding(
            *(FoundKind.THROTTLE_LIST_FULL, str(resource)),
            key=key,
            count=len(kept),
            most=max(room, 0),
            moves=without,
        )


def cordon_findings(
    request: ReassignmentRequest, live: Collection[BrokerId], cluster: ClusterPort
) -> Iterator[TypedFinding]:
    """What brokers would refuse of a cordon, asked with validate_only, and which do not know it."""
    if request.cordon is Cordon.NO:
        return
    live_brokers = [broker for broker in request.emptied if broker in live]
    unable = unable_to_cordon(cluster, live_brokers)
    for broker in unable:
        yield TypedFinding(FoundKind.CORDON_NOT_KNOWN, f"broker {broker}")
    able = [broker for broker in live_brokers if broker not in unable]
    changes = [cordon_change(ConfigResource.broker(broker)) for broker in able]
    for resource, error in cluster.alter_configs(changes, validate_only=True).items():
        if error is not None:
            yield TypedFinding(FoundKind.CORDON_REFUSED, str(resource), error)
    for broker in sorted(set(request.emptied) - set(live)):
        yield TypedFinding(FoundKind.CORDON_AWAY, f"broker {broker}")


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
            finding = TypedFinding(FoundKind.COUNT_REFUSED, topic, error, count=totals[topic])
            yield put_in_words(finding)
