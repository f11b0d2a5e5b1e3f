"""The matrix as a table in docs/reliability.md, made from a run's JUnit file.

``python -m tests.faults.table RESULTS.xml``
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from tests.faults.matrix import CASES, LEFT_OUT, ROWS, Case, Moment

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- the matrix begins -->", "<!-- the matrix ends -->"
FAILED, NOT_RUN = "**failed**", "not run"


def results(junit: Path) -> dict[Case, str]:
    """What came of each case that was run, in words."""
    found, by_id = {}, {case.id: case for case in CASES}
    for test in ElementTree.parse(junit).iter("testcase"):
        case = by_id.get(test.get("name", "").partition("[")[2].rstrip("]"))
        if case is not None:
            reported = {p.get("name"): p.get("value", "") for p in test.iter("property")}
            found[case] = reported.get("outcome") or FAILED
    return found


def table(outcomes: Mapping[Case, str]) -> str:
    """Markdown: a column per moment; what is left out has its reason below."""
    reasons = list(dict.fromkeys(LEFT_OUT.values()))
    lines = ["| | " + " | ".join(Moment) + " |", "|---" * (len(Moment) + 1) + "|"]
    for row in ROWS:
        cells = [
            f"– ({reasons.index(LEFT_OUT[case]) + 1})"
            if case in LEFT_OUT
            else outcomes.get(case, NOT_RUN)
            for case in row.cases
        ]
        lines.append(f"| {row.title} | " + " | ".join(cells) + " |")
    left_out = [f"{number}. {reason}." for number, reason in enumerate(reasons, 1)]
    return "\n".join([*lines, "", "Left out:", "", *left_out])


def written(document: str) -> dict[Case, str]:
    """The cells of the table in a document."""
    by_title = {row.title: row for row in ROWS}
    rows = document.partition(BEGIN)[2].partition(END)[0].splitlines()
    cells: dict[Case, str] = {}
    for title, *row in (
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in rows
        if line.startswith("| ") and not line.startswith("| |")
    ):
        cells |= dict(zip(by_title[title].cases, row, strict=True))
    return cells


def main() -> None:
    """Write the table into the document; cases that were not run this time stay as they are.

    Fails unless every case has held.
    """
    document = DOCUMENT.read_text()
    outcomes = written(document) | results(Path(sys.argv[1]))
    before, _, rest = document.partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(f"{before}{BEGIN}\n{table(outcomes)}\n{END}{after}")
    held = [case for case in CASES if outcomes.get(case, NOT_RUN) not in (FAILED, NOT_RUN)]
    print(f"{len(held)} of {len(CASES)} cases hold; {DOCUMENT} has the table.")
    if len(held) < len(CASES):
        sys.exit(1)


if __name__ == "__main__":
    main()
