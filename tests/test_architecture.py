"""The arrows of docs/architecture.md: dags → plugins → include ← spark_jobs, and never back."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = {"include", "rehome", "dags", "spark_jobs", "local"}
ALLOWED = {
    "include": {"include"},
    "plugins": {"include", "rehome"},
    "dags": {"include", "rehome"},
    "spark_jobs": {"include"},
    "local": {"include", "local"},
}
# Deciding is kept apart from talking to a cluster: these get data or a ClusterPort.
NO_GATEWAY = ("include/planning", "include/execution", "include/reporting", "include/ledger")
# The local cluster's ACLs: no other client can ask a chosen broker which ones it knows.
WIRE = ("include/cluster/", "local/acls.py")
GATEWAY = ("include.cluster.gateway", "include.cluster.wire", "kafka", "confluent_kafka")


def _sources() -> Iterator[Path]:
    for folder in ALLOWED:
        yield from sorted((ROOT / folder).rglob("*.py"))


def _imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Every module imported, with whether that happens at the module's top."""
    tree = ast.parse(path.read_text())
    top = {id(node) for node in tree.body}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [node.module or ""]
        for name in names:
            yield name, id(node) in top


def _problems(path: Path) -> Iterator[str]:
    place = path.relative_to(ROOT).as_posix()
    allowed = ALLOWED[place.split("/")[0]]
    for module, at_top in _imports(path):
        package = module.split(".")[0]
        if package in OURS - allowed:
            yield f"{place} imports {module}"
        if place.startswith("include/"):
            if package == "airflow":
                yield f"{place} imports Airflow"
            if package in ("pyspark", "great_expectations") and (
                at_top or not place.startswith("include/quality/")
            ):
                yield f"{place} imports {module}: only include/quality may, inside functions"
        if place.startswith(NO_GATEWAY) and module.startswith(GATEWAY):
            yield f"{place} imports {module}: it gets data or a ClusterPort"
        wire = module == "include.cluster.wire" or package == "kafka"
        if wire and not place.startswith(WIRE):
            yield f"{place} imports {module}: only include/cluster speaks the wire protocol"


@pytest.mark.parametrize("path", _sources(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_one_way(path: Path) -> None:
    assert list(_problems(path)) == []
