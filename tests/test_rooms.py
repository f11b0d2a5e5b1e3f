"""The rooms of include/ and plugins/: on which floor each is, who may import whom, no circles."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.imports import imports, imports_of

ROOT = Path(__file__).resolve().parent.parent
FLOORS = """
    airflow_plugin       scheduled           cli                 extras.composition
    task_graph           ui
    operators
    sensors
    fleet.watching       notifiers.run_end   operators.base      spark_job       triggers
    hooks                run
    fleet
    alerting             executors           run.authority.refusals
    run.context
    fleet.policies
    extras               api                 notifiers
    hooks.cluster        installation        trigger_check
    fleet.clusters       links               provider
    airflow_versions     hooks.connection_form
    params               task_texts          timetables          ui.flow_pictures    spark
    run.ports
    page                 clusters
    alerts
    reporting            quality              metrics       execution.without_worker
    account              execution.rolling
    execution.advance    execution.create_partitions         execution.direct
    execution.dry_run    execution.poll                  execution.export        execution.foreign
    execution.decide     execution.control               execution.completion
    execution.progress   execution.assessed
    execution.estimate
    execution.admission  execution.throttle
    execution.observation                                execution.governor
    execution.access     execution.actions   execution.policy_from_request   execution.stall
    planning.rollback                                    watching
    planning.planner     planning.explain
    planning.actions
    planning.rebalance
    planning.result      planning.programs
    planning.leadership
    planning.search
    planning.placement   planning.options
    planning.limits
    load_history         quality.plan                    quality.snapshot      old_data
    planning.model       planning.effort                 quality.facts         quality.engine
    ledger.whole
    ledger.store         warehouse                       cluster.gateway
    ledger.stores        cluster.snapshot                cluster.calls
    ledger.base          cluster.clients
    cluster.messages     cluster.connection
    alerts.catalog
    alerts.kinds         clusters.watch_rules
    cluster.interface    domain.run
    settings             airflow_settings
    places_settings
    setting_types
    domain.request
    domain.plan
    domain
    setting_problems
    directory            private_files
    field_descriptions   places          packaging     version
    errors
"""
"""A room may import rooms on floors below its own: none on its own floor, none above. A module that
stands alone on a lower floor is imported by what the rest of its folder imports."""

STRANGERS = {
    "domain": ("cluster", "ledger", "warehouse", "load_history", "planning", "execution"),
    "ledger": ("cluster", "warehouse", "load_history", "planning", "execution", "watching"),
    "planning": ("ledger", "warehouse", "load_history", "execution", "quality"),
    "quality": ("ledger", "planning", "execution"),
    "execution": ("warehouse", "load_history", "quality"),
}
"""Who never imports whom, whatever the floors: the gate, for one, owes the planner nothing."""

PLANNING_OF_EXECUTION = ("rehome.planning.model.packing", "rehome.planning.model.volumes")
"""All that the execution side has of the planner: how copies fit into log dirs."""

MOST_MODULES = 13

Modules = Mapping[str, Path]
Imports = Iterable[tuple[str, bool]]


def modules() -> dict[str, Path]:
    found = {}
    for folder in (ROOT / "include", ROOT / "plugins"):
        for path in sorted((folder / "rehome").rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if parts[-1] != "__init__" and "migrations" not in parts:
                found[".".join(parts)] = path
    return found


ALL = modules()


@cache
def floors() -> dict[str, int]:
    """Room → its floor, counted from the top."""
    lines = FLOORS.strip().splitlines()
    return {room: floor for floor, line in enumerate(lines) for room in line.split()}


@cache
def room_of(module: str) -> str:
    """The room with the longest name that a module's begins with; of none, the module itself."""
    inner = module.removeprefix("rehome.")
    rooms = [room for room in floors() if inner == room or inner.startswith(room + ".")]
    return max(rooms, key=len, default=inner)


def imported(module: str, names: Imports, known: Modules) -> Iterator[str]:
    """Modules of ours that one imports, wherever in the file, for type checkers alone too."""
    for name, _ in names:
        parent = name.rpartition(".")[0]
        yield from (end for end in (name, parent) if end in known and end != module)


def problems(module: str, names: Imports) -> Iterator[str]:
    floor = floors()
    room = room_of(module)
    if room not in floor:
        yield f"{module} is in no room"
        return
    for other in imported(module, names, ALL):
        there = room_of(other)
        if there != room and floor[there] <= floor[room]:
            yield f"{module} ({room}) imports {other} ({there}), which is not on a floor below"
        house, neighbour = (name.split(".")[0] for name in (room, there))
        if neighbour in STRANGERS.get(house, ()):
            yield f"{module} imports {other}: {house} never imports {neighbour}"
        if (house, neighbour) == ("execution", "planning") and other not in PLANNING_OF_EXECUTION:
            yield f"{module} imports {other}: execution has no more of the planner than it needs"


def test_a_room_imports_only_what_is_below_it() -> None:
    found = [one for name, path in ALL.items() for one in problems(name, imports_of(path))]
    assert found == []


def test_every_room_of_the_table_is_there() -> None:
    assert set(floors()) - set(map(room_of, ALL)) == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {name: set(imported(name, imports_of(path), ALL)) for name, path in ALL.items()}
    TopologicalSorter(graph).prepare()


def test_rooms_are_small() -> None:
    folders = ("benchmarks", "tests")
    others = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    paths = [*ALL.values(), *(path for path in others if path.stem != "__init__")]
    count = Counter(path.parent.relative_to(ROOT).as_posix() for path in paths)
    assert {folder: number for folder, number in count.items() if number > MOST_MODULES} == {}


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("rehome.planning.search.a", "from rehome.planning.rebalance import solver"),
        ("rehome.planning.search.a", "from rehome.planning.programs.flow_lp import Flow"),
        ("rehome.domain.kafka", "from rehome.domain.plan.move import Move"),
        (
            "rehome.ledger.a",
            "def f():\n    from rehome.cluster.interface.port import ClusterPort",
        ),
        ("rehome.quality.facts.a", "from rehome.planning.model import rack_tree"),
        ("rehome.execution.decide", "if TYPE_CHECKING:\n    import rehome.execution.advance"),
        ("rehome.execution.dry_run.a", "from rehome.planning.model import layout"),
        ("rehome.planning.planner", "from rehome.ledger import store"),
        ("rehome.fleet.a", "def f():\n    from rehome.run import plan_of_run"),
        ("rehome.run.a", "from rehome.operators.base import ClusterOperator"),
        ("rehome.alerts.a", "from rehome import installation"),
        ("rehome.elsewhere.a", ""),
    ],
)
def test_an_import_against_the_floors_is_found(module: str, source: str) -> None:
    assert list(problems(module, imports(ast.parse(source)))) != []


def test_a_circle_is_found() -> None:
    known = {"rehome.a": Path(), "rehome.b": Path()}
    sources = {"rehome.a": "from rehome import b", "rehome.b": "import rehome.a"}
    graph = {
        name: set(imported(name, imports(ast.parse(source)), known))
        for name, source in sources.items()
    }
    with pytest.raises(CycleError):
        TopologicalSorter(graph).prepare()


def test_no_two_files_of_tests_have_one_name() -> None:
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []
