"""The fleet: every cluster that has a snapshot or is in the clusters file, and its account."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rehome.account.clusters.cluster_account import ClusterAccount


@dataclass(frozen=True, slots=True)
class FleetMember:
    """A cluster as the clusters file and the ledger know it.

    :param name: in the file; "" = it is not there.
    :param connection: that leads to it; "" = not known.
    :param cluster_id: Kafka's own; "" = no snapshot was taken through the connection yet.
    """

    name: str
    connection: str
    cluster_id: str

    @property
    def title(self) -> str:
        """How people know the cluster."""
        return self.name or self.cluster_id or self.connection


@dataclass(frozen=True, slots=True)
class FleetLine:
    """One cluster of the fleet, and what is known of it."""

    member: FleetMember
    account: ClusterAccount


def members(
    file: Mapping[str, str], cluster_ids: Mapping[str, str], with_snapshot: Iterable[str]
) -> list[FleetMember]:
    """Every cluster once: the file's, in its order, and then those that have a snapshot only.

    :param file: name → connection.
    :param cluster_ids: connection → id of the cluster that it was last seen to lead to.
    :param with_snapshot: ids of clusters that have a snapshot.
    """
    file_members = [
        FleetMember(name, through, cluster_ids.get(through, "")) for name, through in file.items()
    ]
    ids = {member.cluster_id for member in file_members}
    leads = {cluster_id: connection for connection, cluster_id in cluster_ids.items()}
    others = sorted(cluster_id for cluster_id in with_snapshot if cluster_id not in ids)
    return [*file_members, *(FleetMember("", leads.get(one, ""), one) for one in others)]
