"""What the brokers' versions of Kafka lack for a plan, by what each broker says that it can.

Never by the name of a version: a broker tells the highest version of each request, and the highest
level of each feature (docs/decisions/127).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.kafka import BrokerId, SupportedVersions, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.text import brokers_text
from rehome.execution.dry_run.cluster_state import ClusterState
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding
from rehome.execution.throttle.rate_scope import METADATA_VERSION

ALTER_REASSIGNMENTS = 45
"""Number of AlterPartitionReassignments in Kafka's protocol."""
CHECKS_REPLICAS_SINCE = 1
"""Its version with ``allow_replication_factor_change`` (KIP-860), of Kafka 4.1."""
REPORTS_LOG_DIRS_SINCE = 17
"""Level of metadata.version 3.7-IV2: from it on a copy between log dirs ends only when the
controller has taken note of it (KIP-858)."""
WAITS_FOR_TARGET_SINCE = 20
"""Level of metadata.version 3.8-IV0, of the first brokers with KAFKA-15665."""
LOG_DIR_COPIES_END_SINCE = 21
"""Level of metadata.version 3.9-IV0, of the first brokers with KAFKA-17190. Seen on 3.7.2 and
3.8.1: a copy that is cancelled, or whose topic is deleted, while the controller takes note of it
ends the broker's reports for good, and no copy between its log dirs takes its replica's place."""


@dataclass(frozen=True, slots=True)
class Lacks:
    """Brokers by what they lack.

    :param checked_replicas: the controller does not see to it that a reassignment leaves the number
        of replicas as it is.
    :param waiting: a reassignment that removes replicas may end while others are not in sync.
    :param ending_copies: copies between log dirs may never end.
    """

    checked_replicas: tuple[BrokerId, ...]
    waiting: tuple[BrokerId, ...]
    ending_copies: tuple[BrokerId, ...]


def lacking(supported: Mapping[BrokerId, SupportedVersions]) -> Lacks:
    """What brokers lack.

    Without metadata.version, which brokers of ZooKeeper do not know, levels say nothing.

    :param supported: what each broker can.
    """
    requests = {
        broker: able.requests.get(ALTER_REASSIGNMENTS, 0) for broker, able in supported.items()
    }
    levels = {
        broker: able.features[METADATA_VERSION]
        for broker, able in supported.items()
        if METADATA_VERSION in able.features
    }
    copies = range(REPORTS_LOG_DIRS_SINCE, LOG_DIR_COPIES_END_SINCE)
    return Lacks(
        tuple(sorted(b for b, highest in requests.items() if highest < CHECKS_REPLICAS_SINCE)),
        tuple(sorted(b for b, level in levels.items() if level < WAITS_FOR_TARGET_SINCE)),
        tuple(sorted(b for b, level in levels.items() if level in copies)),
    )


def version_findings(
    plan: Plan,
    cluster: ClusterPort,
    now: ClusterState,
    in_flight: Collection[TopicPartition] = (),
) -> Iterator[TypedFinding]:
    """What brokers lack of what the plan relies on.

    Any broker may be the one that hands a reassignment on to the controller: where replicas move
    between brokers, those outside of the plan are asked too.

    :param in_flight: partitions that the plan, which is continued, has in flight already.
    """
    across = any(move.adding or move.removing for move in plan.moves)
    concerned = plan.brokers & now.cluster.brokers.keys()
    answers = cluster.supported_versions(sorted(now.cluster.brokers if across else concerned))
    lacks = lacking(answers.value)
    for broker in sorted(concerned & answers.missing.keys()):
        error = answers.missing[broker]
        yield TypedFinding(FoundKind.VERSIONS_NOT_KNOWN, f"broker {broker}", error)
    if lacks.checked_replicas and across:
        yield TypedFinding(FoundKind.REPLICAS_NOT_CHECKED, brokers_text(lacks.checked_replicas))
    if lacks.waiting and any(len(move.target) < len(move.current) for move in plan.moves):
        yield TypedFinding(FoundKind.ENDS_OUT_OF_SYNC, brokers_text(lacks.waiting))
    relocating = {broker for move in plan.moves for broker in move.relocating}
    stands = _with_copies_that_stand(now, in_flight)
    for broker in sorted(relocating & set(lacks.ending_copies)):
        kind = FoundKind.COPY_STANDS if broker in stands else FoundKind.COPIES_MAY_STAND
        yield TypedFinding(kind, f"broker {broker}")


def _with_copies_that_stand(
    now: ClusterState, in_flight: Collection[TopicPartition]
) -> set[BrokerId]:
    """Brokers with a copy between log dirs that has every message, and is not the plan's."""
    return {
        log_dir.broker
        for log_dir in now.log_dirs.value
        for partition, replica in log_dir.replicas.items()
        if replica.is_future and replica.offset_lag == 0 and partition not in in_flight
    }
