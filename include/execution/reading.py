"""One fresh reading of what a dry run judges by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from include.cluster.model import (
    ClusterDescription,
    LogDir,
    OngoingReassignment,
    Partial,
    TopicDescription,
    TopicPartition,
)
from include.cluster.port import ClusterPort
from include.cluster.rights import Role, missing_rights
from include.execution.verdicts import ControllerFacts, facts_of
from include.planning.plan import Plan


@dataclass(frozen=True, slots=True)
class Reading:
    """The cluster as it is now, as far as a plan is concerned."""

    taken_at: datetime
    cluster: ClusterDescription
    topics: Mapping[str, TopicDescription]
    ongoing: Mapping[TopicPartition, OngoingReassignment]
    log_dirs: Partial[list[LogDir]]
    missing_rights: tuple[str, ...]

    def controller_facts(self, *, allow: bool) -> ControllerFacts:
        """What the controller would decide by."""
        return facts_of(
            self.cluster,
            self.topics,
            self.ongoing,
            self.log_dirs.value,
            allow_replication_factor_change=allow,
        )


def read_cluster(plan: Plan, cluster: ClusterPort) -> Reading:
    """Read it.

    :raises ClusterError: it could not be read at all.
    """
    names = {move.partition.topic for move in plan.moves}
    return Reading(
        taken_at=datetime.now(UTC),
        cluster=cluster.describe_cluster(),
        topics=cluster.describe_topics(),
        ongoing=cluster.list_reassignments(),
        log_dirs=cluster.describe_log_dirs(),
        missing_rights=tuple(missing_rights(cluster, names, Role.REASSIGNER)),
    )
