"""Which scripts, and how many drawn seeds, find each fault that is put back.

python -m tests.world.mutant_table --seeds 40      # writes benchmarks/results/mutants.json

What is in the file already is kept; ``--anew`` begins with nothing. docs/reliability.md has the
table.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.world.faults.faults_of_actors import OF_ACTORS, OF_ACTORS_FOUND_BY
from tests.world.faults.faults_of_requests import OF_REQUESTS, OF_REQUESTS_FOUND_BY
from tests.world.faults.faults_of_watching import OF_WATCHING, OF_WATCHING_FOUND_BY
from tests.world.faults.older_faults import OLDER, OLDER_FOUND_BY
from tests.world.mutants import FOUND_BY, MUTANTS, Mutant
from world.luck import script_of
from world.outcome import run
from world.script import Script

ROOT = Path(__file__).resolve().parents[2]
RESULT = ROOT / "benchmarks" / "results" / "mutants.json"
DOCUMENT = ROOT / "docs" / "reliability.md"
BEGINS, ENDS = "<!-- the mutants begin -->\n", "<!-- the mutants end -->\n"
ALL = (*MUTANTS, *OLDER, *OF_ACTORS, *OF_REQUESTS, *OF_WATCHING)
SCRIPTS = {
    **FOUND_BY,
    **OLDER_FOUND_BY,
    **OF_ACTORS_FOUND_BY,
    **OF_REQUESTS_FOUND_BY,
    **OF_WATCHING_FOUND_BY,
}


def found_among(mutant: Mutant, scripts: Iterable[Script]) -> int | None:
    """Which of the scripts finds it first, counted from 1; None = none of them.

    What a script shows without the fault proves nothing.
    """
    for number, script in enumerate(scripts, 1):
        with mutant.in_place():
            kinds = mutant.kinds & {each.kind for each in run(script, traced=False).violations}
        if kinds and kinds - {each.kind for each in run(script, traced=False).violations}:
            return number
    return None


def row(mutant: Mutant, seeds: int) -> dict[str, Any]:
    """One row of the table; ``seeds``: so many drawn ones are tried."""
    return {
        "by_script": mutant.name in SCRIPTS,
        "first_seed": found_among(mutant, map(script_of, range(1, seeds + 1))),
        "seeds_tried": seeds,
        "as": sorted(mutant.kinds),
    }


def table(rows: dict[str, dict[str, Any]]) -> str:
    """As docs/reliability.md has it."""
    lines = ["| fault that is put back | its own script | seeds drawn until one finds it |"]
    lines.append("|---|---|---|")
    for name, found in rows.items():
        first = found["first_seed"]
        seeds = f"more than {found['seeds_tried']}" if first is None else str(first)
        lines.append(f"| {name} | {'finds it' if found['by_script'] else '–'} | {seeds} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Try what is not in the file yet; write the file and the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--anew", action="store_true")
    options = parser.parse_args()
    known = {} if options.anew or not RESULT.exists() else json.loads(RESULT.read_text())
    rows = {}
    for mutant in ALL:
        rows[mutant.name] = known.get(mutant.name) or row(mutant, options.seeds)
        print(mutant.name, rows[mutant.name]["first_seed"], flush=True)
        RESULT.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
    text = DOCUMENT.read_text()
    head, _, rest = text.partition(BEGINS)
    _, _, tail = rest.partition(ENDS)
    DOCUMENT.write_text(f"{head}{BEGINS}{table(rows)}{ENDS}{tail}")


if __name__ == "__main__":
    main()
