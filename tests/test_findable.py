"""Where the tests of a module are: in a file of its name, or in the one that a table names.

The tests of ``include/rehome/planning/search/shed.py`` are
``tests/planning/search/test_shed.py`` or
``test_shed_….py`` beside it. Those of ``plugins/rehome/`` are in ``tests/plugins/``, those of its
page in ``tests/ui/``, those of ``world/`` in ``tests/world/``. Tests of a large module may have a
folder of its name. All other modules are in ``tested_in.txt``.

Either way the test uses the module: it imports it, or something that imports it. What is further
away is in ``reached_through.txt``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import PurePosixPath

import pytest

from tests.imports import TESTS, folder_of, imports_directly, near, sources

Pairs = list[tuple[str, str]]


def pairs(text: str) -> Pairs:
    """(module, the one before the colon) of a table, both as paths below tests/ without ``.py``."""
    found = []
    head = ""
    for line in text.splitlines():
        for word in line.partition("#")[0].split():
            if word.endswith(":"):
                head = word[:-1]
            else:
                found.append((word.lstrip("/") if "/" in word else beside(head, word), head))
    assert len(found) == len(set(found)), "a row names a module twice"
    return found


@cache
def listed() -> Pairs:
    return pairs((TESTS / "tested_in.txt").read_text())


@cache
def between() -> dict[str, str]:
    """Module → the one that imports it, on the way from the module's tests."""
    found = pairs((TESTS / "reached_through.txt").read_text())
    assert len(found) == len(dict(found)), "a module is reached through two others"
    return dict(found)


def beside(file: str, name: str) -> str:
    """A path in the folder of another."""
    return PurePosixPath(file).with_name(name).as_posix()


@cache
def places() -> dict[str, str]:
    """Module or package, by the path that its tests would have below tests/ → its dotted name."""
    found = {}
    for name in sources():
        house, *parts = name.split(".")
        if house in ("rehome", "world") and "migrations" not in parts:
            below = ["world"] if house == "world" else []
            if folder_of(name) == "plugins" and parts[:1] != ["ui"]:
                below = ["plugins"]
            found["/".join((*below, *parts))] = name
    return found


@cache
def modules() -> list[str]:
    """Those that have tests: all but packages."""
    return [place for place, name in places().items() if sources()[name].stem != "__init__"]


def files_of_tests() -> list[str]:
    paths = sorted(TESTS.rglob("test_*.py"))
    return [path.relative_to(TESTS).with_suffix("").as_posix() for path in paths]


def namesake(file: str, known: Collection[str]) -> str | None:
    """The module that a test file is named after: of several, the one with the longest name."""
    aspect = PurePosixPath(file).name.removeprefix("test_")
    words = aspect.split("_")
    names = ["_".join(words[:n]) for n in range(len(words), 0, -1)]
    folder = PurePosixPath(file).parent.as_posix()
    return next(
        (path for path in (*(beside(file, n) for n in names), folder) if path in known), None
    )


def named(
    known: Collection[str], files: Iterable[str], uses: Callable[[str, str], bool]
) -> Iterator[tuple[str, str]]:
    """(module, test file of its name). A file that does not use it is about something else."""
    for file in files:
        module = namesake(file, known)
        if module is not None and uses(file, module):
            yield module, file


def problems(
    entries: Pairs,
    known: Collection[str],
    files: Collection[str],
    uses: Callable[[str, str], bool],
) -> Iterator[str]:
    """Modules whose tests nobody would find, and entries that are wrong or not needed."""
    by_name = dict(named(known, files, uses))
    for module in known:
        if module not in by_name and module not in dict(entries):
            yield f"{module} has no test file of its name that uses it, and none in the table"
    for module, file in entries:
        if module not in known:
            yield f"{module} is in the table, and no module"
        elif module in by_name:
            yield f"{module} is in the table, and has a test file of its name"
        elif file not in files:
            yield f"{file} is in the table, and no test file"
        elif not uses(file, module):
            yield f"{module} is in the table, and {file} does not use it"


def way(file: str, module: str) -> list[str]:
    """A module, those that it is reached through, and last one that the test is near, if any is."""
    found = [module]
    while places()[found[-1]] not in near(file) and found[-1] in between():
        found.append(between()[found[-1]])
    return found


def uses(file: str, module: str) -> bool:
    """Whether a test uses a module."""
    return places()[way(file, module)[-1]] in near(file)


def test_the_tests_of_every_module_are_found_and_use_it() -> None:
    assert list(problems(listed(), modules(), files_of_tests(), uses)) == []


def test_what_a_module_is_reached_through_imports_it() -> None:
    wrong = [
        (module, head)
        for module, head in between().items()
        if places()[module] not in imports_directly(places()[head])
    ]
    assert wrong == []


def test_what_a_module_is_reached_through_is_named_only_where_its_tests_need_it() -> None:
    claims = [*listed(), *named(modules(), files_of_tests(), uses)]
    needed = {step for module, file in claims for step in way(file, module)[:-1]}
    assert set(between()) - needed == set()


KNOWN = ("a/plan", "a/plan_text", "a/solver", "b/move")
FILES = ("a/test_plan", "a/test_plan_text_of_moves", "a/solver/test_speed")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "b/move has no test file of its name that uses it, and none in the table"),
        ("a/test_plan: b/move solver", "a/solver is in the table, and has a test file of its name"),
        ("a/test_plan: b/move gone", "a/gone is in the table, and no module"),
        ("a/test_gone: b/move", "a/test_gone is in the table, and no test file"),
    ],
)
def test_what_is_wrong_with_the_table_is_found(text: str, problem: str) -> None:
    def all_do(_file: str, _module: str) -> bool:
        return True

    assert list(problems(pairs(text), KNOWN, FILES, all_do)) == [problem]
    assert list(problems(pairs("a/test_plan: b/move"), KNOWN, FILES, all_do)) == []


def test_a_file_about_another_module_with_a_longer_name_does_not_count() -> None:
    table = pairs("a/test_plan_text_of_moves: b/move")
    found = list(problems(table, KNOWN, FILES[1:], lambda _file, _module: True))
    assert found == ["a/plan has no test file of its name that uses it, and none in the table"]


@pytest.mark.parametrize(
    ("unused", "problem"),
    [
        ("a/solver", "a/solver has no test file of its name that uses it, and none in the table"),
        ("b/move", "b/move is in the table, and a/test_plan does not use it"),
    ],
)
def test_a_file_that_does_not_use_the_module_does_not_count(unused: str, problem: str) -> None:
    table = pairs("a/test_plan: b/move")
    found = problems(table, KNOWN, FILES, lambda _file, module: module != unused)
    assert list(found) == [problem]


def test_a_test_uses_what_is_one_import_further_or_reached_through_that() -> None:
    assert uses("planning/search/test_local_search", "planning/search/trades")
    assert not uses("planning/search/test_local_search", "alerts/message")
    assert not uses("planning/rebalance/test_rebalance", "planning/rebalance/swap_candidates")
