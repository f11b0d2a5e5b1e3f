"""docs/schema.md names every column and field that is written."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pytest

from rehome.cluster.snapshot.model import (
    BROKERS,
    GROUP_OFFSETS,
    GROUPS,
    LOG_DIRS,
    REPLICAS,
    TABLES,
    TOPICS,
)
from rehome.domain.plan.figures import Link, ResourceBalance, TargetPrice
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.plan.move import MoveReason
from rehome.domain.plan.move_table import MOVES_SCHEMA
from rehome.domain.plan.summary import BrokerLoad, PlanSummary
from rehome.load_history.forecast import DiskForecast
from rehome.load_history.known_rates import ResourceHistory
from rehome.load_history.rollup import ROLLUP
from rehome.quality.engine.results import ExpectationOutcome
from rehome.warehouse import OF_ONE_PLAN, ROLLUP_FILE

TEXT = (Path(__file__).parents[1] / "docs" / "schema.md").read_text()
SCHEMAS = {
    "brokers.parquet": BROKERS,
    "log_dirs.parquet": LOG_DIRS,
    "topics.parquet": TOPICS,
    "replicas.parquet": REPLICAS,
    "groups.parquet": GROUPS,
    "group_offsets.parquet": GROUP_OFFSETS,
    "rollup.parquet": ROLLUP,
    "moves.parquet": MOVES_SCHEMA,
}


def section(name: str) -> str:
    found = re.search(rf"^### [^\n]*{re.escape(name)}.*?(?=^##|\Z)", TEXT, re.M | re.S)
    assert found, f"docs/schema.md has no section {name}"
    return found[0]


def documented(name: str) -> dict[str, tuple[str, bool]]:
    """Column → its type and whether it is never null, as the document's table says."""
    columns: dict[str, tuple[str, bool]] = {}
    for line in section(name).splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != 3 or not cells[0].startswith("`"):
            continue
        names = re.findall(r"`([^`]+)`", cells[0])
        types = [part.strip() for part in cells[1].split(",")]
        for number, column in enumerate(names):
            columns[column] = (types[min(number, len(types) - 1)], cells[0].endswith("*"))
    return columns


def type_text(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list of {type_text(kind.value_type)}"
    if pa.types.is_struct(kind):
        return "struct"
    return str(kind)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_column_is_documented_with_its_type(name: str) -> None:
    expected = {field.name: (type_text(field.type), not field.nullable) for field in SCHEMAS[name]}
    assert documented(name) == expected


def test_every_table_of_a_snapshot_is_documented() -> None:
    others = {"moves.parquet", ROLLUP_FILE}
    assert {f"{table}.parquet" for table in TABLES} | others == SCHEMAS.keys()


@pytest.mark.parametrize(
    ("name", "of"),
    [
        ("summary.json", PlanSummary),
        ("summary.json", BrokerLoad),
        ("summary.json", Infeasible),
        ("summary.json", Subject),
        ("summary.json", ResourceBalance),
        ("summary.json", TargetPrice),
        ("summary.json", Link),
        ("gates.json", ExpectationOutcome),
        ("load.json", ResourceHistory),
        ("load.json", DiskForecast),
    ],
)
def test_every_field_is_documented(name: str, of: type) -> None:
    names = set(re.findall(r"`(?:\w+\.)?(\w+)`", section(name)))
    assert {field.name for field in fields(of)} <= names


def test_every_subject_and_obstacle_is_documented() -> None:
    text = section("summary.json")
    assert [kind for kind in SubjectKind if f"`{kind}`" not in text] == []
    assert [obstacle for obstacle in Obstacle if f"`{obstacle}`" not in text] == []


def test_every_reason_and_file_is_documented() -> None:
    assert all(reason.value in section("moves.parquet") for reason in MoveReason)
    assert all(name in TEXT for name in OF_ONE_PLAN)
