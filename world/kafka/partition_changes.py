"""What becomes of a partition's registration: leaders, ISR, reassignments, eligible replicas.

The rules of PartitionChangeBuilder, PartitionReassignmentReplicas and PartitionReassignmentRevert
in Kafka 4.3 (KIP-455, KIP-841, KIP-966, KAFKA-15665, KAFKA-19975). Pure.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rehome.domain.kafka import BrokerId
from world.kafka.errors import INVALID_REPLICA_ASSIGNMENT, Refusal
from world.kafka.metadata import Partition

Acceptable = Callable[[BrokerId], bool]
Ids = tuple[BrokerId, ...]


class Election(enum.Enum):
    """What may be done to give a partition a leader."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Terms:
    """What a change depends on beside the partition.

    :param acceptable: whether a broker is able to lead: active, with the replica's log dir online.
    :param min_isr: the topic's effective min ISR.
    :param elr: whether eligible leader replicas are kept (KIP-966).
    """

    acceptable: Acceptable
    min_isr: int
    elr: bool
    election: Election = Election.ONLINE


def change(
    before: Partition,
    terms: Terms,
    target: Partition | None = None,
    *,
    unclean_shutdown: BrokerId | None = None,
) -> Partition:
    """The registration after a change; the same object where nothing is different.

    :param target: with the ISR and the replicas that there are to be; None = those of ``before``.
    """
    target = _completed(target or before)
    target = _with_elr(before, target, terms, unclean_shutdown)
    target, elected = _with_leader(before, target, terms)
    if target.isr != before.isr and not target.isr and not terms.elr:
        target = replace(target, isr=before.isr)  # the last one in the ISR stays in it
    if not elected and not set(target.replicas) >= set(before.replicas):
        elected = True  # a new epoch, so that a replica that was removed is not fetched for
    if target.isr and target.leader is not None:
        target = replace(target, last_known_leader=None)
    elif not target.isr and before.leader is not None:
        target = replace(target, last_known_leader=before.leader)
    if elected:
        target = replace(target, leader_epoch=before.leader_epoch + 1)
    kept = tuple([pair for pair in target.dirs if pair[0] in target.replicas])
    target = replace(target, dirs=kept)
    return before if target == before else target


def reassigned(before: Partition, target: Sequence[BrokerId], terms: Terms) -> Partition:
    """A reassignment begins, or takes the place of the one in flight.

    Where all replicas of the one in flight are asked for, its removing ones stay removing ones:
    the controller leaves out what would be an empty list.
    """
    removing = tuple(sorted(set(before.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(before.replicas)))
    wanted = replace(
        before,
        replicas=(*target, *removing),
        removing=removing or before.removing,
        adding=adding or before.adding,
    )
    return change(before, terms, wanted)


def reverted(before: Partition, terms: Terms, topic: str, number: int) -> Partition:
    """A reassignment is cancelled.

    :raises Refusal: 39, where only an unclean election would leave a leader.
    """
    replicas = tuple([broker for broker in before.replicas if broker not in before.adding])
    isr = tuple([broker for broker in before.isr if broker not in before.adding])
    if not isr:
        if terms.election is not Election.UNCLEAN:
            raise Refusal(
                INVALID_REPLICA_ASSIGNMENT,
                f"Unable to revert partition assignment for {topic}:{number} because it would "
                "require an unclean leader election.",
            )
        isr = replicas[:1]
    wanted = replace(before, isr=isr, replicas=replicas, adding=(), removing=())
    return change(before, terms, wanted)


def target_of(partition: Partition) -> frozenset[BrokerId]:
    """The replicas that are left when what is in flight has ended."""
    return frozenset({*partition.replicas, *partition.adding} - set(partition.removing))


def _completed(target: Partition) -> Partition:
    if not target.reassigning:
        return target
    isr = tuple([broker for broker in target.isr if broker not in target.removing])
    replicas = tuple([broker for broker in target.replicas if broker not in target.removing])
    if not isr or not replicas or not set(isr) >= set(target.adding):
        return target
    if len(target.adding) < len(target.removing) and not set(isr) >= set(replicas):
        return target
    return replace(target, isr=isr, replicas=replicas, adding=(), removing=())


def _with_elr(
    before: Partition, target: Partition, terms: Terms, unclean: BrokerId | None
) -> Partition:
    if not terms.elr or len(target.isr) >= terms.min_isr:
        return replace(target, elr=()) if target.elr else target
    candidates = {*target.elr, *before.isr} - set(target.isr) - {unclean}
    return replace(target, elr=tuple(sorted(one for one in candidates if one is not None)))


def _with_leader(before: Partition, target: Partition, terms: Terms) -> tuple[Partition, bool]:
    """The partition with the leader that it gets, and whether that is another one."""

    def valid(broker: BrokerId | None) -> bool:
        if broker is None or not terms.acceptable(broker):
            return False
        return broker in target.isr or (not target.isr and broker in target.elr)

    leader, unclean = before.leader, False
    preferred = target.replicas[0] if target.replicas else None
    if terms.election is Election.PREFERRED and valid(preferred):
        leader = preferred
    elif not valid(before.leader):
        leader = next((broker for broker in target.replicas if valid(broker)), None)
        if leader is None:
            leader = _unclean_leader(before, target, terms)
            unclean = leader is not None
    if leader == before.leader:
        return target, False
    if leader is not None and leader in target.elr:
        rest = tuple([broker for broker in target.elr if broker != leader])
        target = replace(target, isr=(leader,), elr=rest)
    elif unclean and leader is not None:
        target = replace(target, isr=(leader,), elr=(), recovering=True)
    return replace(target, leader=leader), True


def _unclean_leader(before: Partition, target: Partition, terms: Terms) -> BrokerId | None:
    """Of a partition without any replica that is known to have everything: the last leader, where
    that is known, else, if the topic allows it, the first that is alive.
    """
    if terms.elr and not target.isr and not target.elr:
        last = before.last_known_leader
        if last is not None and terms.acceptable(last):
            return last
    if terms.election is not Election.UNCLEAN:
        return None
    return next((broker for broker in target.replicas if terms.acceptable(broker)), None)
