"""The gates in this process: their facts and their rules, judged without Spark.

Facts and rules are the gates' own; only what Great Expectations does with them is done here, for
the few kinds of expectations that they use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rehome.quality.engine.rules import Expectation, Rule
from rehome.quality.gates import Evidence

GateRow = Mapping[str, Any]
_CONDITION = re.compile(r"(NOT )?(\w+)")


def refused_plan(evidence: Evidence) -> dict[str, GateRow]:
    """Name of each rule that a plan breaks → keys and shown columns of the first row that does."""
    rows = {name: table.to_pylist() for name, table in evidence.tables.items()}
    return broken_rules(evidence.rules, evidence.parameters, rows)


def broken_rules(
    rules: Sequence[Rule], parameters: Mapping[str, Any], rows: Mapping[str, Sequence[GateRow]]
) -> dict[str, GateRow]:
    """The same of the rows of any gate's tables."""
    rows_by_rule: dict[str, GateRow] = {}
    for rule in rules:
        for item in rule.expectations:
            arguments = _fill_in(item, parameters)
            first = next(_rows_that_break(item.type, rule.name, arguments, rows[rule.table]), None)
            if first is not None:
                columns = (*rule.keys, *rule.shows)
                rows_by_rule[rule.name] = {key: first[key] for key in columns if key in first}
                break
    return rows_by_rule


def _fill_in(item: Expectation, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: parameters[value["$PARAMETER"]] if isinstance(value, dict) else value
        for name, value in item.arguments().items()
    }


def _rows_that_break(
    kind: str, rule: str, arguments: Mapping[str, Any], rows: Sequence[GateRow]
) -> Iterator[GateRow]:
    """Rows that break an expectation. Of a column alone, what is not known breaks nothing."""
    holds = _QUERIES[rule] if kind == "unexpected_rows_expectation" else _KINDS[kind](arguments)
    negated, column = "", None
    if condition := arguments.get("row_condition"):
        match = _CONDITION.fullmatch(condition)
        assert match is not None, condition
        negated, column = match[1], match[2]
    for row in rows:
        if column is not None and bool(row[column]) is bool(negated):
            continue
        if not holds(row):
            yield row


Holds = Callable[[GateRow], bool]


def _equal(of: Mapping[str, Any]) -> Holds:
    return lambda row: bool(row[of["column_A"]] == row[of["column_B"]])


def _greater(of: Mapping[str, Any]) -> Holds:
    def holds(row: GateRow) -> bool:
        a, b = row[of["column_A"]], row[of["column_B"]]
        if a is None or b is None:
            return True
        return bool(a >= b if of.get("or_equal") else a > b)

    return holds


def _between(of: Mapping[str, Any]) -> Holds:
    least, most = of.get("min_value"), of.get("max_value")

    def holds(row: GateRow) -> bool:
        value = row[of["column"]]
        return value is None or (
            (least is None or value >= least) and (most is None or value <= most)
        )

    return holds


def _in_set(of: Mapping[str, Any]) -> Holds:
    return lambda row: row[of["column"]] is None or row[of["column"]] in of["value_set"]


def _null(of: Mapping[str, Any]) -> Holds:
    return lambda row: row[of["column"]] is None


def _not_null(of: Mapping[str, Any]) -> Holds:
    return lambda row: row[of["column"]] is not None


def _matches(of: Mapping[str, Any]) -> Holds:
    return lambda row: row[of["column"]] is None or bool(re.search(of["regex"], row[of["column"]]))


_KINDS: Mapping[str, Callable[[Mapping[str, Any]], Holds]] = {
    "expect_column_pair_values_to_be_equal": _equal,
    "expect_column_pair_values_a_to_be_greater_than_b": _greater,
    "expect_column_values_to_be_between": _between,
    "expect_column_values_to_be_in_set": _in_set,
    "expect_column_values_to_be_null": _null,
    "expect_column_values_to_not_be_null": _not_null,
    "expect_column_values_to_match_regex": _matches,
}


def _as_sent(row: GateRow) -> bool:
    dirs = row["target_log_dirs"] or ["any"] * len(row["target"])
    return bool(row["sent_replicas"] == row["target"] and row["sent_log_dirs"] == dirs)


def _rack_path(row: GateRow) -> bool:
    rack = row["rack"] or ""
    parts = rack.split("/") if rack.startswith("/") else [rack]
    return bool(row["rack_path"] == [part for part in parts if part])


def _in_order(row: GateRow) -> bool:
    places = (row["first_position"], row["last_position"], row["positions"])
    return row["replicas"] <= 62 and places == (0, row["replicas"] - 1, 2 ** row["replicas"] - 1)


def _all_listed(row: GateRow) -> bool:
    if not row["visible"]:
        return True
    last = -1 if row["last_partition"] is None else row["last_partition"]
    count = row["partitions"] == row["partitions_seen"] == last + 1
    return bool(count and not row["first_partition"])


_QUERIES: Mapping[str, Holds] = {
    "a broker's rack path matches its rack": _rack_path,
    "the replicas of a partition are listed in order": _in_order,
    "all partitions of a topic are listed": _all_listed,
    "the target has a log dir for each replica, or none at all": lambda row: (
        len(row["target_log_dirs"]) in (0, len(row["target"]))
    ),
    "a move changes something": lambda row: bool(
        row["target"] != row["current"] or row["target_log_dirs"] or row["elects"]
    ),
    "a move states how many replicas are in sync": lambda row: (
        row["in_sync"] in (-1, row["in_sync_found"])
    ),
    "the reassignment file has the planned targets": _as_sent,
    "balancing leaders changes only the order of replicas": lambda row: (
        sorted(row["target"]) == sorted(row["current"]) and not row["target_log_dirs"]
    ),
}
"""The rules that are SQL, by their names."""
