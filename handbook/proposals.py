"""Writes docs/proposals.md: what Kafka's proposals ask for, and what of it there is.

Each demand is an entry of proposals.yaml, with the module that meets it and the test that shows it.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import yaml

from handbook.markdown import table
from handbook.sources import ROOT

PAGE = ROOT / "docs" / "proposals.md"
_DEMANDS = ROOT / "handbook" / "proposals.yaml"


class Met(enum.StrEnum):
    """How far a demand is met."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Demand:
    """One demand of a proposal.

    :param ask: what is asked for, in our own words; ``why``: why it is not met in full.
    :param code: path of the module that meets it, from the root; "" = none does.
    :param test: path and name of the test that shows it, as pytest names it; "" = none does.
    """

    ask: str
    met: Met
    why: str = ""
    code: str = ""
    test: str = ""

    def __post_init__(self) -> None:
        if (self.met is Met.YES) is bool(self.why):
            raise ValueError(f"{self.ask}: a demand has a why if, and only if, it is not met")
        if (self.met is Met.NO) is bool(self.code and self.test):
            raise ValueError(f"{self.ask}: what is met, at least in part, has a module and a test")


@cache
def demands() -> Mapping[str, tuple[Demand, ...]]:
    """Every demand, by proposal."""
    read = yaml.load(_DEMANDS.read_text(), Loader=yaml.BaseLoader)
    return {
        proposal: tuple(Demand(**{**row, "met": Met(row["met"])}) for row in rows)
        for proposal, rows in read.items()
    }


def proposals_page() -> str:
    """The page of all demands."""
    return "\n\n".join(_parts()) + "\n"


def _parts() -> Iterator[str]:
    found = Counter(demand.met for rows in demands().values() for demand in rows)
    yield "<!-- Written by `make docs-reference` from handbook/proposals.yaml: change it there. -->"
    yield "# What Kafka's proposals ask for"
    yield (
        "Rehome follows four of Kafka's improvement proposals: KIP-179 (reassigning partitions by "
        "requests, in two revisions), KIP-240 (listing and describing reassignments), KIP-455 "
        "(altering, listing and cancelling them) and KIP-879 (racks of several levels). This is "
        "every demand of theirs, in our words."
    )
    yield (
        f"Of {found.total()} demands {found[Met.YES]} are met, {found[Met.PARTLY]} partly, and "
        f"{found[Met.NO]} are not."
    )
    for proposal, rows in demands().items():
        yield f"## {proposal}"
        yield table(("demand", "met", "by", "shown by"), [_row(demand) for demand in rows])


def _row(demand: Demand) -> tuple[str, ...]:
    met = f"{demand.met}. {demand.why}." if demand.why else demand.met.value
    file, _, name = demand.test.partition("::")
    return (
        demand.ask,
        met,
        f"[`{demand.code}`](../{demand.code})" if demand.code else "",
        f"[`{name}`](../{file})" if name else "",
    )
