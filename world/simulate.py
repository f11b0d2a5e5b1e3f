"""``make simulate``: many seeds, judged; what was found is counted, and shrunk.

python -m world.simulate 200            # seeds 1 to 200, printed
python -m world.simulate 20000 --commit # the same of 20000, written to what is committed
python -m world.simulate --seed 73      # one seed: its script, what was found, the last lines
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

from world import coverage
from world.coverage import Reached
from world.luck import script_of
from world.outcome import Outcome, run
from world.shrink import fails_as, shrunk

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "simulate.json"
DOCUMENT = ROOT / "docs" / "reliability.md"
BEGINS, ENDS = "<!-- what was reached begins -->\n", "<!-- what was reached ends -->\n"
CHUNK = 25
SHRUNK_AT_MOST = 5


@dataclass
class Tally:
    """What many runs have shown.

    :param violations: all of them; ``found``: by seed, in words.
    """

    seeds: int = 0
    violations: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    found: dict[int, list[str]] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    reached: Reached = field(default_factory=Counter)
    unavoidable: int = 0
    calls: int = 0
    hours: float = 0.0

    def add(self, seed: int, outcome: Outcome) -> None:
        """Count one run."""
        self.seeds += 1
        self.violations += len(outcome.violations)
        for found in outcome.violations:
            self.by_kind[found.kind.value] += 1
            self.found.setdefault(seed, []).append(str(found))
        self.done.update(outcome.done)
        self.states.update(outcome.states)
        self.reached.update(outcome.reached)
        self.unavoidable += outcome.unavoidable
        self.calls += outcome.calls
        self.hours += outcome.hours

    def join(self, other: Tally) -> None:
        """Add what another process has counted."""
        for name in ("seeds", "violations", "unavoidable", "calls", "hours"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("by_kind", "done", "states", "reached"):
            getattr(self, name).update(getattr(other, name))
        self.found |= other.found

    def as_json(self, processor_s: float) -> dict[str, Any]:
        """What is committed."""
        return {
            "seeds": self.seeds,
            "violations": self.violations,
            "violations_by_kind": dict(sorted(self.by_kind.items())),
            "seeds_with_violations": sorted(self.found),
            "unavoidable": self.unavoidable,
            "done_and_faults": dict(sorted(self.done.items())),
            "plans_by_end": dict(sorted(self.states.items())),
            **coverage.as_json(self.reached),
            "calls": self.calls,
            "virtual_hours": round(self.hours, 1),
            "processor_s": round(processor_s, 1),
            "runs_per_minute": round(60 * self.seeds / processor_s) if processor_s else None,
        }


def simulated(seeds: Iterable[int]) -> Tally:
    """Run these seeds in this process."""
    tally = Tally()
    for seed in seeds:
        tally.add(seed, run(script_of(seed), traced=False))
    return tally


def in_processes(seeds: range, processes: int) -> Tally:
    """Run them in several."""
    tally = Tally()
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    with ProcessPoolExecutor(processes) as pool:
        for part in pool.map(simulated, chunks):
            tally.join(part)
            for line in _by_seed(part):
                print(line, file=sys.stderr, flush=True)  # a long run tells at once
    return tally


def _processor_s() -> float:
    return sum(u.ru_utime + u.ru_stime for u in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def _by_seed(tally: Tally) -> Iterator[str]:
    for seed, found in sorted(tally.found.items()):
        yield f"seed {seed}: " + "; ".join(found)


def _shown(tally: Tally) -> Iterator[str]:
    for seed in sorted(tally.found)[:SHRUNK_AT_MOST]:
        script = script_of(seed)
        first, *_ = run(script, traced=False).violations
        yield f"\nseed {seed}, as short as it fails ({first.kind}):"
        yield shrunk(script, fails_as(first.kind)).text()


def _one(seed: int) -> None:
    script = script_of(seed)
    outcome = run(script, lines=60)
    print(script.text())
    print("\n".join(outcome.lines))
    for found in outcome.violations:
        print(found)
    print(outcome.sha256)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, run, print; write only where that is asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seeds", type=int, nargs="?", default=1000)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seed", type=int, help="only this one, in full")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a file for the result")
    parser.add_argument(
        "--commit", action="store_true", help="write simulate.json, and its table in the handbook"
    )
    options = parser.parse_args(arguments)
    if options.seed is not None:
        _one(options.seed)
        return
    began = _processor_s()
    tally = in_processes(range(options.first, options.first + options.seeds), options.processes)
    result = tally.as_json(_processor_s() - began)
    text = json.dumps(result, indent=2) + "\n"
    for path in filter(None, (options.out, RESULT if options.commit else None)):
        path.write_text(text)
    if options.commit:
        document = DOCUMENT.read_text()
        head, _, rest = document.partition(BEGINS)
        _, _, tail = rest.partition(ENDS)
        DOCUMENT.write_text(f"{head}{BEGINS}{coverage.table(result)}{ENDS}{tail}")
    print(text, *_shown(tally), sep="\n")


if __name__ == "__main__":
    main()
