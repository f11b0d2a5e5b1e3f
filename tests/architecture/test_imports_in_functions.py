"""Imports stand at the top of their module. Inside a function is one that loads what is heavy.

Airflow parses DAG files again and again, and loads plugins in each of its processes; a command in
a shell answers at once. What both import at once, and all that this imports in turn, is light.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.imports import Imported, all_imports, all_imports_of, imports_of, sources

NUMBERS = ("pyspark", "great_expectations", "pandas", "pyarrow", "numpy", "scipy")
CLIENTS = ("kafka", "confluent_kafka", "airflow.providers.apache.kafka")
SERVER = ("airflow.api_fastapi", "fastapi", "starlette")
LEDGER = ("rehome.ledger.base.database", "rehome.ledger.store")
"""No DAG file is to open the ledger when it is parsed."""

ONLY_INSIDE = {
    "alembic": "half a second in each process, and few that open a ledger have to upgrade it",
    "airflow.models": "Airflow's database, which its own processes reach alone",
    "airflow.assets.manager": "the same",
    "airflow.utils.session": "the same",
    "airflow.executors": "configuration that differs between Airflow's processes",
    "airflow.cli": "Airflow's command, which loads all providers",
    "aws_msk_iam_sasl_signer": "an extra, which may be missing",
    "botocore": "the same",
    "gssapi": "the same",
    "rich.markdown": "a parser of Markdown, for one command of many",
}
"""Other packages that stay inside functions, and why."""


@dataclass(frozen=True)
class LightPart:
    """What is loaded at once, where speed counts.

    :param starts: the modules and packages that are imported; what these import is light, too.
    :param heavy: what it does not load.
    """

    starts: tuple[str, ...]
    heavy: tuple[str, ...]


LIGHT = {
    "DAG files, Rehome's and people's own, and all that they name": LightPart(
        (
            *("dags", "rehome.params", "rehome.links", "rehome.operators", "rehome.sensors"),
            *("rehome.triggers", "rehome.notifiers", "rehome.timetables", "rehome.executors"),
        ),
        (*NUMBERS, *CLIENTS, *SERVER, *LEDGER),
    ),
    "the plan job, which imports all twice": LightPart(("spark_jobs.plan",), ("scipy",)),
    "hooks in people's own DAG files": LightPart(("rehome.hooks",), NUMBERS),
    "what each of Airflow's processes loads": LightPart(
        ("rehome.airflow_plugin", "rehome.provider"), (*NUMBERS, *CLIENTS, *SERVER)
    ),
    "what plugs into ports of the core, in each task": LightPart(
        ("rehome.extras",), (*NUMBERS, *CLIENTS, *SERVER, *LEDGER)
    ),
    "what the callback of a run reads, for which the DAG processor has little time": LightPart(
        ("rehome.ledger.store", "rehome.alerts.run_end", "rehome.warehouse"),
        ("alembic", "pandas", "pyarrow.dataset", "scipy", "pyspark", *CLIENTS, *SERVER),
    ),
    "a command in a shell": LightPart(
        ("rehome.cli.main",), (*NUMBERS, *CLIENTS, *SERVER, *LEDGER, "airflow", "sqlalchemy")
    ),
}

Graph = Mapping[str, frozenset[str]]


def is_one_of(name: str, packages: Iterable[str]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


def modules_of(name: str, known: Iterable[str]) -> set[str]:
    """The modules of ours that an import of ``name`` runs; of another's, ``name`` itself."""
    parts = name.split(".")
    ends = {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
    return ends.intersection(known) - {"rehome"} or {name}


def loaded_by(starts: Iterable[str], graph: Graph) -> set[str]:
    """All that is loaded with these, by imports at the top of modules."""
    ahead = list(starts)
    found: set[str] = set()
    while ahead:
        one = ahead.pop()
        if one not in found:
            found.add(one)
            ahead += graph.get(one, ())
    return found


@cache
def graph_of_ours() -> Graph:
    known = sources()
    return {
        module: frozenset(
            end for name, at_top in imports_of(path) if at_top for end in modules_of(name, known)
        )
        for module, path in known.items()
    }


def light(part: LightPart, graph: Graph) -> set[str]:
    """All that is loaded with it."""
    return loaded_by((name for name in graph if is_one_of(name, part.starts)), graph)


def heavy_by_module(graph: Graph, parts: Iterable[LightPart]) -> Mapping[str, set[str]]:
    """Module that is part of what is light → what it may not load when it is imported."""
    found: dict[str, set[str]] = defaultdict(set)
    for part in parts:
        for module in light(part, graph):
            found[module].update(part.heavy)
    return found


def in_functions(found: Iterable[Imported]) -> Iterable[str]:
    """Names that functions import, each once."""
    return dict.fromkeys(each.name for each in found if each.in_function)


def needless(names: Iterable[str], heavy: Collection[str], graph: Graph) -> Iterator[str]:
    """The names, of those that a module's functions import, that its top should.

    :param heavy: what the module may not load when it is imported.
    """
    for name in names:
        if not is_one_of(name, (*NUMBERS, *CLIENTS, *SERVER, *ONLY_INSIDE)):
            loaded = loaded_by(modules_of(name, graph), graph)
            if not any(is_one_of(one, heavy) for one in loaded):
                yield name


def checked() -> dict[str, Path]:
    return {name: path for name, path in sources().items() if name.split(".")[0] != "world"}


def test_only_what_is_heavy_is_imported_inside_a_function() -> None:
    graph = graph_of_ours()
    heavy = heavy_by_module(graph, LIGHT.values())
    found = {
        name: list(needless(in_functions(all_imports_of(path)), heavy[name], graph))
        for name, path in checked().items()
    }
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.parametrize("part", LIGHT)
def test_what_is_light_loads_nothing_heavy(part: str) -> None:
    loaded = light(LIGHT[part], graph_of_ours())
    assert {one for one in loaded if is_one_of(one, LIGHT[part].heavy)} == set()


def test_every_package_that_stays_inside_functions_is_imported_in_one() -> None:
    names = {name for path in checked().values() for name in in_functions(all_imports_of(path))}
    assert [one for one in ONLY_INSIDE if not any(is_one_of(n, (one,)) for n in names)] == []


GRAPH = {
    "rehome.start": frozenset({"rehome.light"}),
    "rehome.light": frozenset({"json"}),
    "rehome.columns": frozenset({"rehome.plain", "numpy"}),
    "rehome.plain": frozenset({"json"}),
}


@pytest.mark.parametrize(
    ("module", "name", "is_needless"),
    [
        ("rehome.light", "rehome.plain.f", True),
        ("rehome.light", "json", True),
        ("rehome.light", "rehome.columns.f", False),
        ("rehome.plain", "rehome.columns.f", True),
        ("rehome.plain", "numpy", False),
        ("rehome.plain", "airflow.models.dagrun", False),
    ],
)
def test_an_import_in_a_function_needs_a_reason(module: str, name: str, is_needless: bool) -> None:
    heavy = heavy_by_module(GRAPH, [LightPart(("rehome.start",), NUMBERS)])
    assert list(needless([name], heavy[module], GRAPH)) == [name] * is_needless


def test_imports_in_functions_are_found() -> None:
    source = "import a\ndef f():\n    from b import c\n    def g():\n        import d"
    assert list(in_functions(all_imports(ast.parse(source)))) == ["b.c", "d"]
