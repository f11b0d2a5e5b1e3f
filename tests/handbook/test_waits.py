"""The table of waits: its bounds are those of the code, and no wait is left out."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from rehome.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "waits.md").read_text()
BOUND = re.compile(r"`([\w./]+?)(?::(\w+))?` = (\d+) s")
WAITS = ("ProgressTimeout(", "monotonic_s() +", "sleep(")
OF_WAITING = {"include/rehome/execution/access/progress_timeout.py"}
"""What others wait with."""


def constant(path: str, name: str) -> float:
    """What a module assigns to a name, alone or in a tuple."""
    for node in ast.parse((ROOT / path).read_text()).body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id == name:
                return float(ast.literal_eval(node.value))
            if isinstance(target, ast.Tuple):
                names = [item.id for item in target.elts if isinstance(item, ast.Name)]
                if name in names:
                    return float(ast.literal_eval(node.value)[names.index(name)])
    raise AssertionError(f"{path} has no {name}")


def test_the_bounds_are_those_of_the_code() -> None:
    found = BOUND.findall(TEXT)
    assert len(found) > 12
    settings = Settings()
    for place, name, seconds in found:
        known = constant(place, name) if name else getattr(settings, place)
        assert known == float(seconds), (place, name)


def test_no_module_of_the_execution_waits_without_a_row() -> None:
    waiting = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "include" / "rehome" / "execution").rglob("*.py")
        if any(how in path.read_text() for how in WAITS)
    }
    assert {path for path in waiting - OF_WAITING if path not in TEXT} == set()
