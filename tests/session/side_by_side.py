"""Which test files share a process when `make test` runs some of them, and in which order.

Files that need the same costly fixture go one after the other in the same process, so that it is
made once: a second Airflow or secured cluster takes more of a small machine than its tests. And as
it takes of it even while no test uses it, a fixture of the session ends with the last
test that needs it: first come the tests on Airflow and on brokers, last those that only compute.

Of files of the same kind, those with slow tests alone come first, then those with some: what is
long must not be what all other processes wait for in the end.

Each process imports every test file, and pytest rewrites a new one when it is imported first. So
each process begins with other folders, and finds most of the rest rewritten by the others.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

_QUALITY = Path(__file__).resolve().parents[1] / "quality"
_SPARK, _GATES = "Spark", "Spark for gates"
_COSTLY = {
    # Two of them, one after the other: an Airflow alone keeps a core busy.
    "Airflow": re.compile(r"\b(world: World|stack: Stack)\b"),
    "the secured cluster": re.compile(r"\b(secured_\w+|gateway_of)\b"),
    "the mortal cluster": re.compile(r"\bmortal(_cluster)?: LocalCluster\b"),
    _SPARK: re.compile(r'\bSparkSession\b|usefixtures\("spark"'),
}
_LAST_USERS = pytest.StashKey[dict[pytest.FixtureDef[Any], int]]()
_PLACES = pytest.StashKey[Mapping[str, int]]()


class ByCostlyFixture(LoadFileScheduling):
    """Keeps files whole, and files together that need the same costly fixture.

    A test whose process dies has failed. xdist would give it to the next process, which dies too. A
    process that it gives files without tests that are left, or the last test alone, waits without
    an end.
    """

    def remove_node(self, node: WorkerController) -> str | None:
        """Take a process away; the test that it has died in is not run again."""
        work = self.assigned_work[node]
        died_in = next((each for unit in work.values() for each in unit if not unit[each]), None)
        if died_in is not None:
            work[self._split_scope(died_in)][died_in] = True
        self.assigned_work[node] = {name: u for name, u in work.items() if not all(u.values())}
        super().remove_node(node)
        return died_in

    def schedule(self) -> None:
        """Hand tests out. A process runs one when it has the next, or knows that there is none."""
        super().schedule()
        for node in self.nodes:
            self._reschedule(node)

    def _split_scope(self, nodeid: str) -> str:
        return costly_fixture(self.config.rootpath / _file_of(nodeid))


def _file_of(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]


@cache
def costly_fixture(file: Path) -> str:
    """What a test file shares its process for, or the file itself.

    Of Spark there are two: all others would wait in the end for the process that had them all.
    """
    text = file.read_text()
    found = next((name for name, used in _COSTLY.items() if used.search(text)), str(file))
    return _GATES if found == _SPARK and file.is_relative_to(_QUALITY) else found


def pytest_configure(config: pytest.Config) -> None:
    worker = getattr(config, "workerinput", None)
    if worker is None or len(config.args) != 1 or not Path(config.args[0]).is_dir():
        return
    number, count = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    folders = sorted(path for path in Path(config.args[0]).iterdir() if _has_tests(path))
    first = number * len(folders) // count
    config.args[:] = map(str, folders[first:] + folders[:first])


def _has_tests(path: Path) -> bool:
    return path.match("test_*.py") or any(path.rglob("test_*.py"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    on_brokers = {
        _file_of(item.nodeid)
        for item in items
        if "private_cluster" in item.fixturenames  # type: ignore[attr-defined]
        or any(fixture.argname == "cluster" for fixture in _of_the_session(item))
    }

    slow = {item: item.get_closest_marker("slow") is not None for item in items}
    some_slow = {_file_of(item.nodeid) for item, is_slow in slow.items() if is_slow}
    some_quick = {_file_of(item.nodeid) for item, is_slow in slow.items() if not is_slow}

    def turn(item: pytest.Item) -> tuple[int, bool, bool, str]:
        file = _file_of(item.nodeid)
        return kind(file), file not in some_slow, file in some_quick, file

    def kind(file: str) -> int:
        costly = costly_fixture(config.rootpath / file)
        if costly in _COSTLY and costly != _SPARK:
            return list(_COSTLY).index(costly)
        if file in on_brokers:
            return len(_COSTLY)
        return len(_COSTLY) + (1 if costly in (_SPARK, _GATES) else 2)

    items.sort(key=turn)


def _of_the_session(item: pytest.Item) -> Iterator[pytest.FixtureDef[Any]]:
    """The session's fixtures that a test needs, by others too."""
    for fixtures in item._fixtureinfo.name2fixturedefs.values():  # type: ignore[attr-defined]
        if fixtures[-1].scope == "session":  # the last is the nearest to the test
            yield fixtures[-1]


def pytest_collection_finish(session: pytest.Session) -> None:
    places = {item.nodeid: place for place, item in enumerate(session.items)}
    session.stash[_PLACES] = places
    last = {
        fixture: places[item.nodeid] for item in session.items for fixture in _of_the_session(item)
    }
    by_name = {fixture.argname: fixture for fixture in last}
    for item in session.items:
        for name in _asked_for_by_parameters(item) & by_name.keys():
            last[by_name[name]] = max(last[by_name[name]], places[item.nodeid])
    session.stash[_LAST_USERS] = last


def _asked_for_by_parameters(item: pytest.Item) -> set[str]:
    """Fixtures that a fixture gets by name, as its parameter has it: "postgresql"."""
    callspec = getattr(item, "callspec", None)
    values = [] if callspec is None else callspec.params.values()
    return {value for value in values if isinstance(value, str)}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """End what no later test needs. Should one ask for it all the same, it is made anew, once."""
    yield
    if nextitem is None:
        return
    place = item.session.stash[_PLACES][nextitem.nodeid]
    users = item.session.stash[_LAST_USERS]
    for fixture, last in list(users.items()):
        if last < place:
            del users[fixture]
            fixture.finish(item._request)  # type: ignore[attr-defined]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByCostlyFixture | None:
    """Ours for whole files, as `make test` wants; the cases of one file go as xdist has them."""
    return ByCostlyFixture(config, log) if config.getvalue("dist") == "loadfile" else None
