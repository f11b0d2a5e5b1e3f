"""Time and identities come from one place wherever the simulator runs the code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rehome.domain import clock
from rehome.execution.access.progress_timeout import ProgressTimeout
from tests.imports import imports

ROOT = Path(__file__).resolve().parent.parent.parent
SIMULATED = (
    *(
        "include/rehome/domain",
        "include/rehome/ledger",
        "include/rehome/execution",
        "include/rehome/alerts",
    ),
    *("include/rehome/metrics", "include/rehome/planning", "include/rehome/cluster/snapshot"),
    *("plugins/rehome/run", "plugins/rehome/sensors", "plugins/rehome/triggers"),
    *("plugins/rehome/operators/throttle.py", "plugins/rehome/operators/execute.py"),
    *("plugins/rehome/operators/sweep.py", "plugins/rehome/operators/completion"),
    "world",
)
"""What runs in the simulator: files and folders."""
NOT_RUN = ("include/rehome/ledger/migrations",)
MODULES = ("time", "random", "uuid", "secrets")
SEEDED = ("imports random.Random", "imports uuid.UUID")
"""What the world may import: a generator with a seed, and a type."""
OF_MODULES = ("os.urandom", "asyncio.sleep")
NOW = ("now", "utcnow", "today")


def direct_uses(source: str) -> Iterator[str]:
    """What a file takes from the machine itself."""
    tree = ast.parse(source)
    for name, _ in imports(tree):
        if name.split(".")[0] in MODULES:
            yield f"imports {name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in NOW:
            if ast.unparse(node.value) in ("datetime", "date"):
                yield f"asks {ast.unparse(node)}"
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in (
            "os.urandom",
            "asyncio.sleep",
        ):
            yield f"uses {ast.unparse(node)}"


ALLOWED = {
    "include/rehome/domain/clock.py": "the one place",
    "plugins/rehome/triggers/progress.py": "the trigger's own loop, which Airflow runs",
}


def _files() -> Iterator[Path]:
    for place in SIMULATED:
        path = ROOT / place
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


@pytest.mark.slow
def test_what_the_simulator_runs_takes_time_and_identities_from_the_clock() -> None:
    found = {}
    for path in _files():
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(NOT_RUN) or name in ALLOWED:
            continue
        uses = list(direct_uses(path.read_text()))
        if name.startswith("world/"):
            uses = [use for use in uses if use not in SEEDED]
        if uses:
            found[name] = uses
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from time import sleep",
        "from uuid import uuid4",
        "import random",
        "def f():\n    return datetime.now(UTC)",
        "def f():\n    return os.urandom(4)",
    ],
)
def test_a_direct_use_is_found(source: str) -> None:
    assert len(list(direct_uses(source))) == 1


class _Standing:
    """A world in which no time passes but by waiting."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def utc_now(self) -> datetime:
        return datetime.fromtimestamp(self.at_s, UTC)

    def monotonic_s(self) -> float:
        return self.at_s

    def sleep(self, seconds: float) -> None:
        self.at_s += seconds

    def new_id(self) -> str:
        return "0" * 32


def test_another_clock_is_in_force_until_the_end_of_its_block() -> None:
    with clock.replaced_by(_Standing()):
        timeout = ProgressTimeout(3600)
        for _ in range(5):
            timeout.note_answer(progress=False)
            clock.sleep(1000)
        assert timeout.exhausted
        assert clock.utc_now() == datetime(1970, 1, 1, 1, 23, 20, tzinfo=UTC)
        assert clock.new_id() == "0" * 32
    assert clock.utc_now().year > 2000
    assert clock.new_id() != clock.new_id()
