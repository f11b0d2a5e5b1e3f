"""Whose rules hold for a watched cluster, and through which connection anything is started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rehome import installation
from rehome.clusters.watch_rules import WatchRules
from rehome.domain.run.watched.finding_kinds import WatchPolicy
from rehome.fleet import clusters
from rehome.fleet.bound import known_misled

if TYPE_CHECKING:
    from rehome.clusters.binding import Misled
    from rehome.ledger.store import Ledger


def rules_for(connection: str) -> WatchRules:
    """The rules of the cluster behind a connection: the clusters file's, or the setting's.

    A cluster that the clusters file leaves out has no windows there, nor targets: it is watched,
    and nothing is started for it.

    :raises InvalidRequestError: the setting, or the clusters file, cannot be used.
    """
    file = clusters.file()
    entry = file.through(connection)
    if entry is not None and entry.watch is not None:
        return entry.watch
    rules = WatchRules.parse(installation.settings(connection).watch_rules)
    return _only_watched(rules) if file.clusters and entry is None else rules


def _only_watched(rules: WatchRules) -> WatchRules:
    return rules.model_copy(update={"policy": WatchPolicy.WATCH, "policies": {}})


@dataclass(frozen=True, slots=True)
class WatchedThrough:
    """Whose rules, windows and policy hold for a cluster.

    :param connection: "" = nobody's: it is judged by the setting's rules, as one that the clusters
        file leaves out.
    :param misled: why nothing is started for the cluster; None = nothing hinders it.
    """

    connection: str
    misled: Misled | None = None

    @property
    def rules(self) -> WatchRules:
        """The rules that hold: nothing follows by them where nothing may be started.

        :raises InvalidRequestError: the setting, or the clusters file, cannot be used.
        """
        rules = rules_for(self.connection)
        return _only_watched(rules) if self.misled is not None else rules


def connection_for(ledger: Ledger, cluster_id: str, taken_through: str) -> WatchedThrough:
    """The connection whose rules, windows and policy hold for a cluster: the one of the entry that
    is bound to it, whichever a person's run has taken the snapshot through. A connection that is
    bound to another cluster, and its entry, say nothing of this one.

    :param taken_through: connection of the newest snapshot.
    :raises ClustersFileError: the clusters file cannot be used.
    """
    from rehome.clusters.binding import entries_for

    file, bindings = clusters.file(), ledger.bindings()
    connections = [file.clusters[n].connection for n in entries_for(cluster_id, file, bindings)]
    right = [each for each in connections if bindings.leads.get(each) == cluster_id]
    if right:
        mismatch = known_misled(ledger, right[0], cluster_id)
        return WatchedThrough("" if mismatch else right[0], mismatch)
    mismatch = known_misled(ledger, taken_through, cluster_id)
    if connections and mismatch is None:  # its own connection leads elsewhere, or was never used
        led_to = bindings.leads.get(connections[0], "")
        mismatch = known_misled(ledger, connections[0], led_to) if led_to else None
    return WatchedThrough("" if mismatch else taken_through, mismatch)
