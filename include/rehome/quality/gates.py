"""Entry points of the gates on snapshots and plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.engine.frames import frame_of
from rehome.quality.engine.many_clusters import among_clusters, judged_together, stack_tables
from rehome.quality.engine.results import GateResult
from rehome.quality.engine.rules import Rule
from rehome.quality.engine.runner import run_gate
from rehome.quality.facts.gate_input import Checked
from rehome.quality.plan.rules import plan_parameters, plan_rules
from rehome.quality.plan.tables import plan_tables
from rehome.quality.snapshot.rules import snapshot_rules
from rehome.quality.snapshot.tables import (
    Concerned,
    GatedSnapshot,
    snapshot_tables,
    tables_of_many,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_snapshot(
    spark: SparkSession,
    snapshot_uri: str,
    snapshot: Snapshot,
    now: datetime,
    *,
    max_age_s: float,
    additional: bool = False,
    balanced: tuple[BrokerId, ...] | None = None,
) -> GateResult:
    """Gate on a snapshot: is it good enough to plan on? Spark reads its tables from
    ``snapshot_uri``.

    :param additional: whether reassignments in flight are allowed (KIP-455).
    :param balanced: brokers whose load, or that of their log dirs, the plan will balance; None =
        all. Others may be dead, or have failed log dirs.
    """
    rules = snapshot_rules(additional=additional)
    concerned = Concerned(balanced)
    with snapshot_tables(spark, snapshot_uri, snapshot, now, concerned) as tables:
        return run_gate("snapshot", tables, rules, parameters={"max_age_s": max_age_s})


def check_snapshots(
    spark: SparkSession,
    clusters: Mapping[str, GatedSnapshot],
    alone: Callable[[str], GateResult],
    now: datetime,
    *,
    max_age_s: float,
    additional: bool = False,
) -> dict[str, GateResult]:
    """Gate on the snapshots of several small clusters, in few passes.

    :param clusters: name → snapshot; ``alone``: checks one cluster by itself.
    """
    rules = snapshot_rules(additional=additional)

    def together(names: Sequence[str]) -> GateResult:
        with tables_of_many(spark, {name: clusters[name] for name in names}, now) as tables:
            return run_gate(
                "snapshot", tables, among_clusters(rules), parameters={"max_age_s": max_age_s}
            )

    return judged_together(list(clusters), together, alone)


@dataclass(frozen=True)
class Evidence:
    """Input of the gate on one plan: rules, parameters and tables. Built without Spark; can be
    pickled.
    """

    rules: tuple[Rule, ...]
    parameters: Mapping[str, Any]
    tables: Mapping[str, pa.Table]

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        plan: Plan,
        request: ReassignmentRequest,
        *,
        reassignment: Mapping[str, Any] | str,
        rollback: Mapping[str, Any] | str,
        digests: Mapping[str, str] | None = None,
        min_free_disk_fraction: float = 0.0,
    ) -> Evidence:
        """Collect the plan, and the facts that it must agree with.

        :param reassignment: content of reassignment.json as it will be written, or its
            text.
        :param rollback: the same of rollback.json.
        :param digests: name of each of these files → SHA-256 of its bytes.
        :param min_free_disk_fraction: part of each log dir that must stay free at every moment.
        """
        free, file_digests = min_free_disk_fraction, dict(digests or {})
        checked = Checked(snapshot, plan, request, reassignment, rollback, free, file_digests)
        rules = plan_rules(request, rack_levels=checked.rack_levels)
        return cls(rules, plan_parameters(request), plan_tables(checked))


def check_plan(
    spark: SparkSession,
    snapshot: Snapshot,
    plan: Plan,
    request: ReassignmentRequest,
    **files: Any,
) -> GateResult:
    """Gate on a plan: does it keep every hard rule?

    :param files: see :meth:`Evidence.of`.
    """
    return check_evidence(spark, Evidence.of(snapshot, plan, request, **files))


def check_evidence(spark: SparkSession, evidence: Evidence) -> GateResult:
    """Gate on a plan: does it keep every hard rule?"""
    tables = {name: frame_of(spark, table) for name, table in evidence.tables.items()}
    return run_gate("plan", tables, evidence.rules, parameters=evidence.parameters)


def check_evidences(
    spark: SparkSession, evidences: Mapping[str, Evidence]
) -> dict[str, GateResult]:
    """Gate on the plans of several small clusters, in few passes.

    :param evidences: name → evidence. Those with the same rules and parameters are checked
        together.
    """
    alike: dict[str, list[str]] = {}
    for name, evidence in evidences.items():
        key = repr((evidence.rules, sorted(evidence.parameters.items())))
        alike.setdefault(key, []).append(name)

    def together(names: Sequence[str]) -> GateResult:
        first = evidences[names[0]]
        tables = {
            table: frame_of(
                spark, stack_tables({name: evidences[name].tables[table] for name in names})
            )
            for table in first.tables
        }
        rules = among_clusters(first.rules)
        return run_gate("plan", tables, rules, parameters=first.parameters)

    def alone(name: str) -> GateResult:
        return check_evidence(spark, evidences[name])

    result_by_name: dict[str, GateResult] = {}
    for names in alike.values():
        result_by_name |= judged_together(names, together, alone)
    return result_by_name
