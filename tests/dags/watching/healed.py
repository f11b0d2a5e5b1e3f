"""A watched cluster, with the runs that watching starts carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.dags.runs import Run, started_by_a_task
from tests.plugins.fleet.watched import Watched, watch_by

EMPTY = ("empty_broker", "broker 4")


class Healed(Watched):
    """A watched cluster, with the runs that watching starts carried out."""

    rehome: Callable[..., Run]
    carried_out: list[Run]

    def carry_out(self, start: dict[str, Any], **options: Any) -> Run:
        """The run, by the very id that the ledger knows it by."""
        with self.patch.context() as patched:
            started_by_a_task(patched, start["trigger_run_id"])
            dag = start["trigger_dag_id"]
            run = self.rehome(self.cluster, dag=dag, **start["conf"], **options)
        self.carried_out.append(run)
        return run

    def rules(self, **given: Any) -> None:
        watch_by(self.patch, self.cluster, **given)


def held_by(seen: Watched, topic: str, broker: int) -> int:
    partitions = seen.gateway.describe_topics([topic])[topic].partitions.values()
    return sum(broker in partition.replicas for partition in partitions)
