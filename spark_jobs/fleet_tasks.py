"""Plans each cluster of a fleet in a Spark task of its own."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.errors import RehomeError
from rehome.load_history.forecast import load_report
from rehome.load_history.known_rates import Demands, LoadHistory
from rehome.planning.options import PlanOptions
from rehome.warehouse import Warehouse, read_snapshot
from spark_jobs.gated_plan import RefusedError
from spark_jobs.plan import by_history, plan_forward

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from rehome.cluster.snapshot.model import Snapshot


@dataclass(frozen=True)
class Answer:
    """What a task says of its cluster: a plan, or why there is none.

    :param history, load: what the plan went by, and load.json, where the cluster has a history.
    :param refusal: kind, message and details of a refusal.
    :param task: Spark's number of the task that planned it.
    """

    plan: Plan | None = None
    history: LoadHistory | None = None
    load: Mapping[str, Any] | None = None
    refusal: tuple[str, str, list[str]] | None = None
    task: int | None = None


@dataclass(frozen=True)
class PlanTask:
    """Plans one cluster inside an executor.

    :param uri: of the snapshot.
    :param snapshot: without its replicas, which come as a table.
    :param history: URI of the warehouse whose rollups hold the load; None = plan without.
    """

    uri: str
    snapshot: Snapshot
    request: ReassignmentRequest
    history: str | None
    demands: Demands
    forecast_days: int
    options: PlanOptions

    def run(self) -> Answer:
        """The plan, or why there is none. Whatever goes wrong, only this cluster is without."""
        try:
            return self._plan(replace(self.snapshot, replicas=read_snapshot(self.uri).replicas))
        except RehomeError as error:
            refusal = RefusedError.invalid(error)
            return Answer(refusal=(refusal.kind, str(refusal), refusal.details))
        except Exception as error:  # noqa: BLE001 - returned as this cluster's failure
            return Answer(refusal=("planning_failed", traceback.format_exc(), [repr(error)]))

    def _plan(self, snapshot: Snapshot) -> Answer:
        def solve(rated: Snapshot) -> Plan:
            return plan_forward(rated, self.request, self.options)

        warehouse = None if self.history is None else Warehouse(self.history)
        if warehouse is None or not warehouse.rollups(snapshot.cluster_id).days():
            return Answer(solve(snapshot))
        history = LoadHistory.read(warehouse, snapshot, self.demands)
        plan = by_history(snapshot, history, solve)
        return Answer(plan, history, load_report(snapshot, plan, history, self.forecast_days))


def run_all(spark: SparkSession, tasks: Sequence[PlanTask]) -> list[Answer]:
    """The answer of each, planned side by side.

    A range of as many partitions as rows: nothing is shuffled, so neither a hash nor adaptive
    execution can bring two clusters into one task. Each task reads its own replicas.
    """
    if not tasks:
        return []

    def plan_some(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow
        from pyspark import TaskContext

        context = TaskContext.get()
        task = 0 if context is None else context.taskAttemptId()
        for number in (value for batch in batches for value in batch.column("id").to_pylist()):
            answer = pickle.dumps(replace(tasks[number].run(), task=task))
            yield pyarrow.RecordBatch.from_pydict({"id": [number], "answer": [answer]})

    each = spark.range(0, len(tasks), 1, len(tasks))
    rows = each.mapInArrow(plan_some, "id long, answer binary").collect()
    answers = {row["id"]: pickle.loads(row["answer"]) for row in rows}
    return [answers[number] for number in range(len(tasks))]
