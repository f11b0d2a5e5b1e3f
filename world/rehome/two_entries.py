"""A clusters file in which, for a while, two entries are for one cluster: each by a connection that
leads there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from rehome.clusters.clusters_file import ClusterEntry, ClustersFile
from world.airflow.shape import COLLECT
from world.airflow.standing_in import CONNECTION
from world.airflow.states import TaskState
from world.judge.flights import Span
from world.judge.two_of_one import Entries
from world.rehome.by_hand import CLUSTER

if TYPE_CHECKING:
    from world.rehome.installation import Installation
    from world.stage import Stage

OTHER = "kafka_other"
"""Another connection that leads to the cluster."""


class TwoEntries:
    """Adds entries, and takes them away again.

    :ivar spans: when the file of each installation had two.
    """

    def __init__(self, at_s: Callable[[], float]) -> None:
        self.spans: dict[str, list[Span]] = {}
        self._at_s = at_s
        self._before: dict[str, ClustersFile] = {}

    def add(self, site: Installation) -> None:
        """The file names the other connection, too; one that did not exist names both."""
        self._before.setdefault(site.name, site.file)
        first = site.file.clusters or {CLUSTER: _entry(CONNECTION)}
        second = {**first, f"{CLUSTER}-again": _entry(OTHER)}
        site.file = site.file.model_copy(update={"clusters": second})
        self.spans.setdefault(site.name, []).append(Span(self._at_s(), inf))

    def take_away(self, site: Installation) -> None:
        """It is again as it was; where nothing was added, it stays."""
        if site.name not in self._before:
            return
        site.file = self._before[site.name]
        spans = self.spans[site.name]
        spans[:] = [replace(each, until=min(each.until, self._at_s())) for each in spans]


def _entry(connection: str) -> ClusterEntry:
    return ClusterEntry.model_validate({"connection": connection})


def entries_seen(stage: Stage) -> list[Entries]:
    """When each installation knew that two entries are for one cluster, and who began then. Whose
    ledger was replaced may not know it.
    """
    found = []
    for name, spans in stage.two_entries.spans.items():
        rehome = stage.rehomes[name]
        runs = (*rehome.airflow.runs, *rehome.airflow.others)
        taken = [
            run.ended_at
            for run in runs
            if run.graph.dag_id == COLLECT and run.conf.get("kafka_config_id") == OTHER
            if run.ended_at is not None and run.tasks["snapshot"].state is TaskState.SUCCESS
        ]
        if not taken or len(stage.ledgers[name]) > 1:
            continue
        known = [replace(each, since=max(each.since, *taken[:1])) for each in spans]
        found.append(Entries(name, known, {run.name: run.began_at for run in runs}))
    return found
