"""Names the committed results whose code has changed since they were measured: `make bench-stale`.

A result stands for the commit that it names. One that names none, or one that a rebase has taken
out of the history, stands for the commit that has written its file.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import document

ROOT = Path(__file__).parents[2]
RESULTS = Path("benchmarks") / "results"
_ENGINE = "include/rehome/"
PLANNING = (f"{_ENGINE}planning",)
EXECUTION = (f"{_ENGINE}execution", f"{_ENGINE}ledger")
GATES = (f"{_ENGINE}quality", "spark_jobs")
PAGE = (f"{_ENGINE}account", f"{_ENGINE}ledger", "plugins/rehome/ui")
WATCHING = (f"{_ENGINE}watching", "plugins/rehome/fleet")

CODE = {
    "actions.json": PLANNING,
    "ablation.json": PLANNING,
    "api_server.json": ("plugins/rehome/ui", "plugins/rehome/api"),
    "day.json": WATCHING,
    "execute.json": EXECUTION,
    "execute_long.json": EXECUTION,
    "fleet.json": PLANNING + GATES,
    "gates.json": GATES,
    "goals.json": PLANNING,
    "governor.json": (f"{_ENGINE}execution",),
    "growth.json": (
        *(f"{_ENGINE}ledger", f"{_ENGINE}warehouse.py", f"{_ENGINE}directory.py"),
        f"{_ENGINE}cluster/snapshot",
    ),
    "limits.json": PLANNING,
    "mutants.json": ("world",),
    "page.json": PAGE,
    "peers.json": PLANNING,
    "people.json": PLANNING,
    "people_optima.json": ("benchmarks/people_clusters.py", "benchmarks/people/optimum.py"),
    "plan.json": PLANNING + GATES,
    "poll.json": EXECUTION,
    "predict.json": EXECUTION,
    "sensitivity.json": PLANNING,
    "simulate.json": (*EXECUTION, "plugins/rehome", "world"),
    "simulator.json": (f"{_ENGINE}execution", "benchmarks/simulation"),
    "slow_plans.json": PLANNING,
    "small_partitions.json": EXECUTION,
    "snapshot.jsonl": (f"{_ENGINE}cluster",),
    "soak.json": ("include", "plugins", "spark_jobs"),
    "topics.json": PLANNING,
    "watch.json": WATCHING,
}
"""Each result and the code that it was measured with."""
COLUMNS = {"result": "result", "of commit": "commit", "of day": "day", "commits since": "since"}


@dataclass(frozen=True)
class Age:
    """How old a result is.

    :ivar commit, day: what it stands for.
    :ivar since: commits that have changed its code afterwards.
    """

    result: str
    commit: str
    day: str
    since: int


def ages(root: Path = ROOT, of: Mapping[str, Sequence[str]] = CODE) -> Iterator[Age]:
    """Of every committed result.

    :param of: the code of each result, as folders or files below ``root``.
    :raises subprocess.CalledProcessError: this is no checkout.
    """
    git = Git(root)
    for result, code in of.items():
        path = root / RESULTS / result
        named, written = _named(path), git.say("log", "-1", "--format=%h", "--", str(path))
        commit = named if named and git.is_in_history(named) else written
        since = git.say("rev-list", "--count", f"{commit}..HEAD", "--", *code)
        yield Age(result, commit, git.say("log", "-1", "--format=%cs", commit), int(since))


@dataclass(frozen=True)
class Git:
    """A checkout's history."""

    root: Path

    def say(self, *arguments: str) -> str:
        """What a command prints."""
        done = subprocess.run(self._command(*arguments), capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def is_in_history(self, commit: str) -> bool:
        """Whether HEAD comes from a commit."""
        asked = self._command("merge-base", "--is-ancestor", commit, "HEAD")
        return not subprocess.run(asked, capture_output=True, check=False).returncode

    def _command(self, *arguments: str) -> list[str]:
        return ["git", "-C", str(self.root), *arguments]


def _named(path: Path) -> str:
    """The commit that a result names; "" = none."""
    found: Any = json.loads(path.read_text()) if path.suffix == ".json" else {}
    first = found[0] if isinstance(found, list) and found else found
    return (first.get("commit") or "") if isinstance(first, dict) else ""


def main() -> None:
    """Print them, the oldest code first."""
    rows = sorted(ages(), key=lambda age: -age.since)
    print(*document.table(COLUMNS, [vars(row) for row in rows]), sep="\n")


if __name__ == "__main__":
    main()
