"""Many plans through one gate: each is a case, named in a column of its own."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.figures import ResourceBalance
from rehome.domain.plan.kafka_json import reassignment_json, rollback_json
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.plan_hash import hash_of
from rehome.domain.plan.summary import BrokerLoad, PlanSummary
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.planning.result.summary_figures import what_is_weakened
from rehome.quality.engine.frames import frame_of
from rehome.quality.engine.results import ExpectationOutcome
from rehome.quality.engine.rules import Expectation, Rule
from rehome.quality.engine.runner import run_gate
from rehome.quality.facts.gate_input import Checked
from rehome.quality.gates import Evidence
from rehome.quality.in_process.rules_on_rows import refused_plan
from rehome.quality.plan.broker_table import BALANCED, COMPARED, brokers_after
from rehome.quality.plan.rules import plan_parameters, plan_rules
from rehome.quality.plan.tables import plan_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MIN_FREE = 0.05


def planned(snapshot: Snapshot, request: ReassignmentRequest, **options: Any) -> Checked:
    """What the planner makes of a request, with the files that go with it."""
    plan = make_plan(
        snapshot, request, PlanOptions(plan_id="p", min_free_disk_fraction=MIN_FREE, **options)
    )
    return with_files(snapshot, plan, request)


def with_files(snapshot: Snapshot, plan: Plan, request: ReassignmentRequest) -> Checked:
    sent, back = reassignment_json(plan.moves), rollback_json(plan.moves)
    return Checked(snapshot, plan, request, sent, back, MIN_FREE)


def with_moves(checked: Checked, moves: Iterable[Move]) -> Checked:
    """The same with other moves, and everything that states them adjusted."""
    moves = tuple(moves)
    plan = replace(checked.plan, moves=moves)
    altered = with_files(checked.snapshot, plan, checked.request)
    rows = brokers_after(altered).to_pylist()
    summary = replace(
        plan.summary,
        plan_hash=hash_of(plan),
        partitions=len(moves),
        replica_moves=sum(len(move.adding) for move in moves),
        leader_changes=sum(move.current[:1] != move.target[:1] for move in moves),
        elections=sum(move.reason is MoveReason.ELECTION for move in moves),
        bytes_to_move=sum(move.bytes_to_move for move in moves),
        lower_bound_bytes=0,
        weakened=what_is_weakened(checked.snapshot, moves),
        brokers=tuple(
            BrokerLoad(row["broker"], **dict(zip(COMPARED, row["computed"], strict=False)))
            for row in rows
        ),
    )
    summary = replace(summary, resources=_balances(summary))
    return replace(altered, plan=replace(plan, summary=summary))


def _balances(summary: PlanSummary) -> tuple[ResourceBalance, ...]:
    """The balances of a summary, as its brokers end."""
    found = {balance.resource: balance for balance in summary.resources}
    for resource, (before, after) in BALANCED.items():
        found[resource] = replace(
            found[resource],
            before=tuple(getattr(load, before) for load in summary.brokers),
            after=tuple(getattr(load, after) for load in summary.brokers),
        )
    return tuple(found.values())


def with_move(checked: Checked, partition: TopicPartition, **changes: Any) -> Checked:
    """The same with one move changed, and everything that states it adjusted."""
    return with_moves(
        checked,
        (
            replace(move, **changes) if move.partition == partition else move
            for move in checked.plan.moves
        ),
    )


def with_summary(checked: Checked, **changes: Any) -> Checked:
    summary = replace(checked.plan.summary, **changes)
    return replace(checked, plan=replace(checked.plan, summary=summary))


def copied(content: Mapping[str, Any] | str) -> dict[str, Any]:
    """One of Kafka's files, to be spoilt; not its text."""
    assert not isinstance(content, str)
    return copy.deepcopy(dict(content))


@dataclass(frozen=True)
class Broken:
    """A rule that a case breaks, and the rows that break it."""

    rule: str
    rows: tuple[str, ...]


def rules_broken_by(checked: Checked) -> set[str]:
    """What the gate in process refuses of a plan."""
    rules = plan_rules(checked.request, rack_levels=checked.rack_levels)
    evidence = Evidence(rules, plan_parameters(checked.request), plan_tables(checked))
    return set(refused_plan(evidence))


def broken_by(spark: SparkSession, cases: Mapping[str, Checked]) -> dict[str, list[Broken]]:
    """Per case, what its gate refuses. One run of the gate checks them all: each rule on the
    rows of the cases whose request asks for it.
    """
    asked: dict[Rule, list[int]] = {}
    tables: dict[str, list[pa.Table]] = {}
    for number, checked in enumerate(cases.values()):
        values = plan_parameters(checked.request)
        for rule in plan_rules(checked.request, rack_levels=checked.rack_levels):
            asked.setdefault(_with_values(rule, values), []).append(number)
        for name, table in plan_tables(checked).items():
            column = pa.array([number] * len(table), pa.int32())
            tables.setdefault(name, []).append(table.append_column("case", column))
    frames = {
        name: frame_of(spark, pa.concat_tables(parts, promote_options="permissive"))
        for name, parts in tables.items()
    }
    found: dict[str, list[Broken]] = {name: [] for name in cases}
    names = list(cases)
    everywhere = list(range(len(cases)))
    rules = [
        _only_in(rule, None if numbers == everywhere else numbers)
        for rule, numbers in asked.items()
    ]
    for outcome in _failed(frames, rules):
        rows: dict[str, list[str]] = {}
        for row in outcome.offending_rows:
            written, _, text = row.removeprefix("case ").partition(", ")
            rows.setdefault(names[int(written)], []).append(text)
        for case, texts in rows.items():
            found[case].append(Broken(outcome.name, tuple(texts)))
    return found


def _with_values(rule: Rule, values: Mapping[str, Any]) -> Rule:
    """The rule with the values of its parameters: they differ by case."""
    kwargs = [
        {
            name: values[value["$PARAMETER"]] if isinstance(value, dict) else value
            for name, value in item.arguments().items()
        }
        for item in rule.expectations
    ]
    return _with_arguments(rule, kwargs)


def _with_arguments(rule: Rule, arguments: Iterable[Mapping[str, Any]]) -> Rule:
    arguments_of = zip(rule.expectations, arguments, strict=True)
    changed = (Expectation(item.type, json.dumps(kwargs)) for item, kwargs in arguments_of)
    return replace(rule, expectations=tuple(changed))


def _only_in(rule: Rule, cases: list[int] | None) -> Rule:
    """The rule on rows of these cases, which it names first; None = all cases."""
    inside = f"case IN ({', '.join(map(str, cases))})" if cases is not None else "true"
    arguments = []
    for item in rule.expectations:
        kwargs = item.arguments()
        if "unexpected_rows_query" in kwargs:
            query = kwargs["unexpected_rows_query"]
            assert query.startswith("SELECT ")
            assert query.count(" WHERE NOT ") == 1
            query = query.replace("SELECT ", "SELECT case, ", 1)
            kwargs["unexpected_rows_query"] = query.replace(
                " WHERE NOT ", f" WHERE {inside} AND NOT "
            )
        elif cases is not None:
            both = f"{inside} AND ({kwargs.get('row_condition', 'true')})"
            kwargs |= {"row_condition": both, "condition_parser": "spark"}
        arguments.append(kwargs)
    return replace(_with_arguments(rule, arguments), keys=("case", *rule.keys))


def _failed(frames: Mapping[str, DataFrame], rules: list[Rule]) -> Iterable[ExpectationOutcome]:
    # Rules of one name differ by their request: each needs a name of its own in one run.
    named = [replace(rule, name=f"{number} {rule.name}") for number, rule in enumerate(rules)]
    with pytest.MonkeyPatch.context() as patch:
        for place in ("runner", "expectation_results"):
            patch.setattr(f"rehome.quality.engine.{place}.ROWS_SHOWN", 100_000)
        result = run_gate("plan", frames, named)
    assert {item.name: item.exception for item in result.crashed} == {}
    for outcome in result.failed:
        yield replace(outcome, name=outcome.name.partition(" ")[2])
