"""The fleet: every cluster that has a snapshot or is in the clusters file, and its health."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rehome.ledger.base.records import PlanRecord
from rehome.page.cluster_brokers import BrokerState
from rehome.page.cluster_view import ClusterView
from rehome.page.controls import WindowAhead


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


@dataclass(frozen=True, slots=True)
class FleetLine:
    """One cluster of the fleet.

    :param view: as its newest snapshot shows it; None = there is none.
    :param imbalance: of the broker that holds most beyond its share of bytes, as part of that
        share; None = not known.
    :param findings: open ones; None = the cluster is not watched.
    :param window: the next one; None = it has none, or it is not known.
    """

    member: FleetMember
    view: ClusterView | None
    imbalance: float | None
    findings: int | None
    active: PlanRecord | None
    window: WindowAhead | None

    @property
    def title(self) -> str:
        """How people know the cluster."""
        return self.member.name or self.member.cluster_id or self.member.connection


def members(
    file: Mapping[str, str], known: Mapping[str, str], seen: Iterable[str]
) -> list[FleetMember]:
    """Every cluster once: the file's, in its order, and then those that have a snapshot only.

    :param file: name → connection.
    :param known: connection → id of the cluster that it was last seen to lead to.
    :param seen: ids of clusters that have a snapshot.
    """
    found = [FleetMember(name, through, known.get(through, "")) for name, through in file.items()]
    named = {member.cluster_id for member in found}
    leads = {cluster_id: connection for connection, cluster_id in known.items()}
    others = sorted(cluster_id for cluster_id in seen if cluster_id not in named)
    return [*found, *(FleetMember("", leads.get(one, ""), one) for one in others)]


def fleet_lines(
    members: Iterable[FleetMember],
    views: Mapping[str, ClusterView],
    active: Mapping[str, PlanRecord],
    findings: Mapping[str, int],
    windows: Mapping[str, WindowAhead],
) -> list[FleetLine]:
    """A line for each cluster.

    :param views, active, findings: by the cluster's id; ``windows``: by connection.
    """
    return [
        FleetLine(
            member,
            view := views.get(member.cluster_id),
            None if view is None else imbalance(view.brokers),
            findings.get(member.cluster_id),
            active.get(member.cluster_id),
            windows.get(member.connection),
        )
        for member in members
    ]


def imbalance(brokers: Sequence[BrokerState]) -> float | None:
    """How far the fullest broker is above its share of the stored bytes, as part of that share.

    Shares are by the size of the disks. None where a live broker's are not known.
    """
    alive = [broker for broker in brokers if broker.live]
    sizes = [broker.total_bytes or 0 for broker in alive]
    held = [broker.size_bytes for broker in alive]
    if not alive or not all(sizes) or None in held:
        return None
    stored = sum(size or 0 for size in held)
    if not stored:
        return 0.0
    shares = [stored * part / sum(sizes) for part in sizes]
    return max((size or 0) / share - 1 for size, share in zip(held, shares, strict=True))
