"""A cluster is its id: whether what a connection leads to is what it, and its entry, are bound to.

Connections are edited, and addresses change hands; the entry in the clusters file goes on naming
the connection. Topics and brokers of the same names are on other clusters as well. Pure.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from rehome.clusters.clusters_file import ClustersFile
from rehome.errors import STEP_UNCHANGED, RehomeError
from rehome.ledger.stores.by_cluster.bindings import Bindings

REBIND = "bind it to that cluster on the page Clusters"


class MisledBy(enum.StrEnum):
    """Why nothing acts through a connection."""

    CONNECTION_BOUND_ELSEWHERE = "connection_bound_elsewhere"
    ENTRY_BOUND_ELSEWHERE = "entry_bound_elsewhere"
    TWO_ENTRIES = "two_entries"  # of the clusters file, for one cluster


@dataclass(frozen=True, slots=True)
class Misled:
    """A connection through which nothing acts.

    :param cluster_id: where it leads.
    :param bound_id: what it, or its entry, is bound to; that same cluster for two entries.
    :param entry: of the clusters file that names it; "" = none does.
    :param entries: for two entries: all that are for the cluster.
    """

    why: MisledBy
    connection: str
    cluster_id: str
    bound_id: str
    entry: str = ""
    entries: Sequence[str] = ()

    def strays_to(self, cluster_id: str) -> bool:
        """Whether it leads by mistake to a cluster that is not its own: that it does is told, and
        nothing of what is found there.
        """
        return self.cluster_id == cluster_id != self.bound_id

    @property
    def text(self) -> str:
        """What is wrong, as a sentence without a full stop."""
        match self.why:
            case MisledBy.CONNECTION_BOUND_ELSEWHERE:
                of_entry = f", which is that of entry {self.entry}," if self.entry else ""
                return (
                    f"Connection {self.connection}{of_entry} leads to cluster {self.cluster_id}, "
                    f"but is bound to cluster {self.bound_id}"
                )
            case MisledBy.ENTRY_BOUND_ELSEWHERE:
                return (
                    f"Entry {self.entry} of the clusters file is bound to cluster {self.bound_id}, "
                    f"but its connection {self.connection} leads to cluster {self.cluster_id}"
                )
            case MisledBy.TWO_ENTRIES:
                return (
                    f"Entries {', '.join(self.entries)} of the clusters file are for one cluster, "
                    f"{self.cluster_id}: whose values hold is not known"
                )

    @property
    def next_step(self) -> str:
        """What a person does about it."""
        if self.why is MisledBy.TWO_ENTRIES:
            return "Leave one of them in the clusters file."
        return (
            f"Let the connection lead to cluster {self.bound_id} again. If cluster "
            f"{self.cluster_id} is right, because it was rebuilt or replaced, {REBIND}."
        )

    @property
    def rebinds(self) -> bool:
        """Whether a person may bind it to the cluster that it leads to."""
        return self.why is not MisledBy.TWO_ENTRIES


class MisledError(RehomeError):
    """A connection, or its entry in the clusters file, is bound to another cluster."""

    def __init__(self, misled: Misled) -> None:
        self.misled = misled
        super().__init__(
            misled.text,
            state_left=STEP_UNCHANGED,
            next_step=misled.next_step,
        )


def misled_through(
    connection: str, cluster_id: str, file: ClustersFile, bindings: Bindings
) -> Misled | None:
    """Why nothing acts through a connection; None = it leads to what it is bound to.

    What is not bound yet is bound by its first use, so it fits.

    :param cluster_id: where the connection leads.
    """
    entry = entry_name(connection, file)
    bound_id = _bound_to(connection, bindings) or cluster_id
    if bound_id != cluster_id:
        why = MisledBy.CONNECTION_BOUND_ELSEWHERE
        return Misled(why, connection, cluster_id, bound_id, entry)
    if not entry:
        return None
    bound_id = bindings.entries.get(entry, cluster_id)
    if bound_id != cluster_id:
        return Misled(MisledBy.ENTRY_BOUND_ELSEWHERE, connection, cluster_id, bound_id, entry)
    alike = entries_for(cluster_id, file, bindings)
    if len(alike) > 1:
        return Misled(MisledBy.TWO_ENTRIES, connection, cluster_id, cluster_id, entry, tuple(alike))
    return None


def entry_name(connection: str, file: ClustersFile) -> str:
    """The name of the entry that names a connection; "" = none does."""
    return next((n for n, each in file.clusters.items() if each.connection == connection), "")


def entries_for(cluster_id: str, file: ClustersFile, bindings: Bindings) -> list[str]:
    """The entries that are bound to a cluster, or will be at their first use: by what their
    connection is bound to.
    """
    return [
        name
        for name, each in file.clusters.items()
        if (bindings.entries.get(name) or _bound_to(each.connection, bindings)) == cluster_id
    ]


def all_misled(file: ClustersFile, bindings: Bindings) -> list[Misled]:
    """Every connection through which nothing acts, by where each was last seen to lead."""
    verdicts = (
        misled_through(name, leads, file, bindings) for name, leads in bindings.leads.items()
    )
    return [each for each in verdicts if each is not None]


def _bound_to(connection: str, bindings: Bindings) -> str | None:
    """What a connection is bound to, or will be: an earlier Rehome has only seen where it leads."""
    return bindings.connections.get(connection, bindings.leads.get(connection))
