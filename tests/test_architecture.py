"""The arrows of docs/architecture.md: dags → plugins → include ← spark_jobs, and never back."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.imports import facts_of, folder_of, imports, imports_of, public_names

ROOT = Path(__file__).resolve().parent.parent
OURS = {"include", "plugins", "dags", "spark_jobs", "local", "handbook", "world"}
ALLOWED = {
    "include": {"include"},
    "plugins": {"include", "plugins"},
    "dags": {"include", "plugins"},
    "spark_jobs": {"include", "spark_jobs"},
    "local": {"include", "local"},
    "handbook": {"include", "plugins", "handbook"},
    "world": {"include", "plugins", "dags", "world"},
}
# A model of Kafka that knew what Rehome expects of brokers would agree with it.
KAFKA_MODEL = ("rehome.domain", "rehome.cluster.interface")
# Deciding is kept apart from talking to a cluster: these get data or a ClusterPort.
NO_GATEWAY = (
    *(
        "include/rehome/planning",
        "include/rehome/execution",
        "include/rehome/reporting",
        "include/rehome/ledger",
    ),
    *("include/rehome/load_history", "world"),
)
# The local cluster's ACLs: no other client can ask a chosen broker which ones it knows.
WIRE = ("include/rehome/cluster/", "local/kafka/acls.py")
GATEWAY = ("rehome.cluster.gateway", "rehome.cluster.clients", "kafka", "confluent_kafka")


def _sources() -> Iterator[Path]:
    for folder in ALLOWED:
        yield from sorted((ROOT / folder).rglob("*.py"))


def _within(name: str, parts: tuple[str, ...], separator: str) -> bool:
    return any(name == part or name.startswith(part + separator) for part in parts)


def _problems(place: str, source: str) -> Iterator[str]:
    return _wrong_imports(place, imports(ast.parse(source)))


def _wrong_imports(place: str, found: Iterable[tuple[str, bool]]) -> Iterator[str]:
    allowed = ALLOWED[place.split("/")[0]]
    for name, at_import in found:
        package = name.split(".")[0]
        folder = folder_of(name)
        if folder in OURS - allowed:
            yield f"{place} imports {name}"
        if place.startswith("include/"):
            if package == "airflow":
                yield f"{place} imports Airflow"
            if package in ("pyspark", "great_expectations") and (
                at_import or not place.startswith("include/rehome/quality/")
            ):
                yield f"{place} imports {name}: only include/rehome/quality may, inside functions"
        if _within(place, NO_GATEWAY, "/") and _within(name, GATEWAY, "."):
            yield f"{place} imports {name}: it gets data or a ClusterPort"
        ours = place.startswith("world/kafka/") and folder in ("include", "plugins")
        if ours and not _within(name, KAFKA_MODEL, "."):
            yield f"{place} imports {name}: it knows the protocol and the port, nothing else"
        wire = _within(name, ("rehome.cluster.clients.wire", "kafka"), ".")
        if wire and not place.startswith(WIRE):
            yield f"{place} imports {name}: only include/rehome/cluster speaks the wire protocol"


def test_imports_point_one_way() -> None:
    problems = [
        problem
        for path in _sources()
        for problem in _wrong_imports(path.relative_to(ROOT).as_posix(), imports_of(path))
    ]
    assert problems == []


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("include/rehome/planning/a.py", "from rehome.cluster import gateway"),
        ("include/rehome/execution/a.py", "from rehome.cluster.gateway import Gateway"),
        ("include/rehome/execution/a.py", "def f():\n    import confluent_kafka.admin"),
        ("include/rehome/quality/a.py", "try:\n    import pyspark\nexcept ImportError:\n    pass"),
        ("include/rehome/quality/a.py", "class A:\n    from pyspark import sql"),
        ("include/rehome/planning/a.py", "def f():\n    import pyspark"),
        ("include/rehome/ledger/a.py", "from airflow import models"),
        ("include/rehome/cluster/a.py", "from rehome.hooks import cluster"),
        ("plugins/rehome/a.py", "from dags import reassign_partitions"),
        ("plugins/rehome/a.py", "from rehome.cluster.clients import wire"),
        ("spark_jobs/a.py", "from rehome.hooks import cluster"),
        ("include/rehome/execution/a.py", "from world.kafka import cluster"),
        ("world/kafka/a.py", "from rehome.execution import decide"),
    ],
)
def test_an_import_against_the_arrows_is_found(place: str, source: str) -> None:
    assert len(list(_problems(place, source))) == 1


@pytest.mark.parametrize(
    ("place", "source"),
    [
        ("include/rehome/quality/a.py", "def f():\n    import pyspark"),
        ("include/rehome/quality/a.py", "if TYPE_CHECKING:\n    import pyspark"),
        ("include/rehome/execution/a.py", "from rehome.cluster.interface.port import ClusterPort"),
        ("plugins/rehome/a.py", "from rehome.cluster.gateway import Gateway"),
        ("include/rehome/planning/a.py", "import kafkaesque"),
        ("world/kafka/a.py", "from rehome.domain.kafka import Broker"),
        ("world/a.py", "from rehome.execution import decide"),
    ],
)
def test_an_import_along_the_arrows_is_let_through(place: str, source: str) -> None:
    assert list(_problems(place, source)) == []


# Of named tuples, the standard library, librdkafka, Airflow and pytest: there is no public way.
PRIVATE_OF_OTHERS = frozenset(
    {
        *("_asdict", "_replace", "_fields", "_exit", "_getframe"),
        *("_TIMED_OUT", "_WAIT_COORD", "_AUTHENTICATION", "_SSL"),
        *("_application_args", "_executor_names", "_fixtureinfo", "_request", "_write_config"),
        *("_get_parent_defaults", "_serialize_rendered_fields"),
    }
)
OWN = ("self", "cls")
BY_NAME = ("setattr", "getattr", "delattr", "patch", "object")
"""Functions that take a name as a string; the last one is ``mock.patch.object``."""


_PRIVATE = re.compile(
    r"""(?<!\bself)(?<!\bcls)\._[^_]|["'.}]_[^_]|\bimport\b.*\b_[^_]|^[ ]*_\w+(,|\)| as )""",
    re.MULTILINE,
)
"""Where a file may have one: an attribute, a string's last name, what is imported."""


def _reaches_into(source: str) -> list[str]:
    """Private names of other objects and modules that a test reads, replaces or imports."""
    if not _PRIVATE.search(source):
        return []
    found = []
    for node in ast.walk(ast.parse(source)):
        names: list[str] = []
        if isinstance(node, ast.Attribute) and not _is_own(node.value):
            names = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and _name_of(node.func) in BY_NAME:
            names = [last for arg in node.args[:2] if (last := _last_name(arg))]
        found += [n for n in names if n.startswith("_") and not n.startswith("__")]
    return [name for name in found if name not in PRIVATE_OF_OTHERS]


def _last_name(node: ast.expr) -> str:
    """The last part of a dotted name in a constant, or at the end of an f-string."""
    while isinstance(node, ast.JoinedStr):
        node = node.values[-1]
    return str(node.value).rpartition(".")[2] if isinstance(node, ast.Constant) else ""


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in OWN


def _name_of(function: ast.expr) -> str:
    return getattr(function, "attr", "") or getattr(function, "id", "")


def test_no_test_reaches_into_private_names() -> None:
    paths = sorted((ROOT / "tests").rglob("*.py"))
    found = {path.relative_to(ROOT).as_posix(): _reaches_into(path.read_text()) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "source",
    [
        "gateway._clients",
        "from local.demo import _options",
        "from local.demo import (\n    options,\n    _steps,\n)",
        "from local.demo import (\n    _steps as steps,\n)",
        "from local.demo import (options,\n    _steps)",
        'patch.setattr(trigger, "_open", 1)',
        'monkeypatch.setattr("rehome.domain.text._plural", None)',
        'mock.patch(f"{MODULE}._open")',
        'getattr(cluster, "_layout")',
    ],
)
def test_a_private_name_that_is_reached_into_is_found(source: str) -> None:
    assert len(_reaches_into(source)) == 1


MAY_REPEAT = {
    "T": "a type variable",
    "C": "a type variable",
    "Found": "a type variable",
}
"""Public names that several modules define, and why that misleads nobody."""


def test_a_public_name_has_one_meaning() -> None:
    folders = ("include", "plugins", "spark_jobs")
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    count = Counter(name for path in paths for name in facts_of(path).public_names)
    assert {name for name, times in count.items() if times > 1} == set(MAY_REPEAT)


def test_what_counts_as_a_public_name() -> None:
    source = "from a import B\nclass C: X = 1\nD, _e = 1, 2\nF: int = 3\nlog = 4\nif B:\n    G = 5"
    assert public_names(ast.parse(source)) == {"C", "D", "F", "G"}
