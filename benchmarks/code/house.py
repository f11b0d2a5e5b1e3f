"""What of the code is core and what is extra: `make lines`.

The core is what every run needs. An extra plugs into a port of the core (``rehome.run.ports``), or
is called by a task or route of its own; the core imports none. An extra imports of the core what
``SEAM`` names, and nothing else. Where both meet, and only there, stand ``COMPOSITION``, the DAG
files and the Spark jobs. tests/architecture/test_core_and_extras.py holds all imports to this.
"""

from __future__ import annotations

import argparse
import subprocess
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

ROOMS_OF_EXTRAS: Mapping[str, tuple[str, ...]] = {
    "watching": (
        *("watching", "alerts.finding_alerts", "page.findings", "operators.watch"),
        *("fleet.watching", "fleet.watch_runs", "fleet.watched_through"),
        *("fleet.judged_snapshots", "fleet.attempts"),
    ),
    "fleet": (
        *("clusters.due", "clusters.overlaps", "clusters.refused_targets", "fleet.due_clusters"),
        *("operators.plan_fleet", "page.fleet", "ui.routes.cluster_pages"),
    ),
    "load history": (
        *("load_history", "quality.history", "operators.upkeep.rollup", "extras.recorded_loads"),
    ),
    "explain": ("planning.explain", "page.explained", "ui.routes.explain"),
    "metrics": ("metrics", "extras.airflow_metrics"),
    "alert channels": (
        *("alerts.channels", "alerts.several", "alerts.run_end", "notifiers"),
        "operators.send_alerts",
    ),
    "export": ("execution.export", "extras.kafka_files"),
    "new partitions": (
        *("execution.create_partitions", "operators.add_partitions"),
        "reporting.added_partitions",
    ),
}
"""Each extra and its rooms: modules and packages of ``rehome``."""

COMPOSITION = ("airflow_plugin", "cli", "extras.composition", "provider", "scheduled", "ui.routes")
"""What joins the core and its extras. Of a package that is an extra's or the core's, here stands
what is not, as the router of ``ui.routes``."""

SEAM = frozenset(
    {
        # types, and what is asked for
        *("domain", "errors", "settings", "setting_problems", "places.path_parts"),
        *("cluster.interface", "cluster.snapshot.columns", "cluster.snapshot.model"),
        *("clusters.binding", "clusters.clusters_file", "clusters.watch_rules"),
        # what has happened
        *("ledger.store", "ledger.base.alert_records"),
        *("ledger.base.records", "ledger.stores.watched", "warehouse"),
        "ledger.stores.authority.taken_snapshots",
        # what is known, and what people are to know
        *("account", "page.files", "alerting"),
        *("alerts.alert", "alerts.alert_text", "alerts.catalog", "alerts.due_alerts"),
        *("alerts.kinds", "alerts.message"),
        # a cluster as arrays, and what is allowed where
        *("planning.limits", "planning.model", "planning.result.outcome"),
        "planning.placement.add_partitions",
        *("quality.engine",),
        # what a run does, and how it is kept from harm
        *("execution.access", "execution.actions", "execution.advance", "execution.poll"),
        *("execution.dry_run.throttle_checks", "execution.foreign.flight_words"),
        *("execution.governor.cluster_health", "execution.policy_from_request"),
        "execution.throttle.keys",
        # a task of Airflow, and the run that it belongs to
        *("airflow_versions", "executors", "installation", "run", "spark_job"),
        *("fleet.bound", "fleet.clusters", "fleet.paused_plan", "fleet.plan_settings"),
        "fleet.policies",
        *("operators.approval.without_plan", "operators.assets", "operators.base"),
        "operators.plan",
        # a route of the page
        *("ui.access", "ui.clusters", "ui.dag_runs", "ui.page_bounds", "ui.rendering"),
        "ui.routes.shared",
    }
)
"""Rooms of the core that extras may import."""

_FOLDERS = ("include", "plugins", "dags", "spark_jobs")


def _length(module: str, rooms: Collection[str]) -> int:
    """Of the longest of the rooms that a module is in; 0 = it is in none."""
    inner = module.removeprefix("rehome.")
    return max((len(each) for each in rooms if f"{inner}.".startswith(f"{each}.")), default=0)


@cache
def extra_of(module: str) -> str | None:
    """The extra that a module is part of; None = it is core, or composition."""
    known = {name: _length(module, rooms) for name, rooms in ROOMS_OF_EXTRAS.items()}
    name = max(known, key=known.__getitem__)
    return name if known[name] > _length(module, COMPOSITION) else None


@cache
def is_composition(module: str) -> bool:
    """Whether a module joins the core and its extras."""
    if not module.startswith("rehome."):
        return True
    if module.startswith("rehome.ui.routes."):
        return False
    return bool(_length(module, COMPOSITION)) and extra_of(module) is None


@cache
def is_seam(module: str) -> bool:
    """Whether extras may import a module of the core."""
    return bool(_length(module, SEAM))


def problem(module: str, imports: str) -> str | None:
    """What is wrong with an import; None = nothing."""
    here, there = extra_of(module), extra_of(imports)
    if is_composition(module):
        return None
    if is_composition(imports):
        return f"{module} imports {imports}, which joins the core and its extras"
    if here is None and there is not None:
        return f"{module} of the core imports {imports} of {there}"
    if here is not None and there is None and not is_seam(imports):
        return f"{module} of {here} imports {imports}, which is inside the core"
    return None


def part_of(path: Path) -> str:
    """The part that a source file is counted as."""
    *folder, name = path.relative_to(ROOT).with_suffix("").parts[1:]
    module = ".".join([*folder, *([] if name == "__init__" else [name])])
    return extra_of(module) or ("composition" if is_composition(module) else "core")


def sources() -> Iterator[Path]:
    """Every file of production code."""
    for folder in _FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def counted(paths: Collection[Path]) -> dict[str, tuple[int, int]]:
    """Part → its files and lines, the core first."""
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path in paths:
        files[part_of(path)] += 1
        lines[part_of(path)] += len(path.read_text().splitlines())
    order = ("core", "composition", *ROOMS_OF_EXTRAS)
    return {part: (files[part], lines[part]) for part in order if files[part]}


def table(paths: Collection[Path]) -> Iterator[str]:
    """Files and lines of each part, as text."""
    found = counted(paths)
    extras = [found[part] for part in ROOMS_OF_EXTRAS if part in found]
    together = {"extras together": (sum(n for n, _ in extras), sum(n for _, n in extras))}
    everything = {"all": (sum(n for n, _ in found.values()), sum(n for _, n in found.values()))}
    for part, (files, lines) in {**found, **together, **everything}.items():
        yield f"{part:<18}{files:>6,} files{lines:>9,} lines"


def lines_at(commit: str) -> int:
    """Lines of production code in a commit.

    :raises subprocess.CalledProcessError: there is no such commit.
    """
    command = ("git", "-C", str(ROOT), "grep", "-c", "", commit, "--", *_FOLDERS)
    counts = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    files = (line.rpartition(":") for line in counts.splitlines())
    return sum(int(number) for file, _, number in files if file.endswith(".py"))


def main() -> None:
    """Print how large each part is, and how much all has grown."""
    parser = argparse.ArgumentParser(description="count the lines of the core and of its extras")
    parser.add_argument("--since", metavar="COMMIT", action="append", default=[])
    paths = list(sources())
    print(*table(paths), sep="\n")
    now = sum(lines for _, lines in counted(paths).values())
    for commit in parser.parse_args().since:
        then = lines_at(commit)
        print(f"{then:,} lines in {commit}: {now - then:+,} since")


if __name__ == "__main__":
    main()
