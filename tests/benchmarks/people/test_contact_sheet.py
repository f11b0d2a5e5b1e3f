"""The picture of people's clusters."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks.people.contact_sheet import held, sheet, stays
from benchmarks.people.judged_plans import planned
from benchmarks.people_clusters import People
from rehome.domain.actions import Action

NEW = People("3 + 1 & more", 4, new=1, sigma=0, topics=(12,), action=Action.EXPAND)
DRAIN = People("drain", 4, topics=(12,), action=Action.DRAIN, params={"brokers": (2,)})


def test_shares_are_of_the_brokers_that_stay() -> None:
    made = planned(DRAIN)
    assert stays(made).tolist() == [True, True, False, True]
    before, after = held(made, made.arrays.rows), held(made, made.rows)
    assert before.replicas.sum() == pytest.approx(after.replicas.sum())
    assert after.replicas.tolist()[2] == after.bytes.tolist()[2] == 0
    assert after.replicas[[0, 1, 3]] == pytest.approx(1), "each has a third"


def test_each_plan_has_a_cell_with_bars_of_its_brokers() -> None:
    plans = [(planned(case), {"moves": 9, "gb": 1.5}) for case in (NEW, DRAIN)]
    picture = ElementTree.fromstring(sheet(plans))
    cells = [each for each in picture if each.tag.endswith("}g")]
    names = [next(iter(cell)).text for cell in cells]
    assert names == ["3 + 1 & more", "drain"]
    bars = [[each.get("class") for each in cell if each.tag.endswith("}rect")] for cell in cells]
    assert [kinds.count("before") for kinds in bars] == [8, 8]
    assert [kinds.count("gone") for kinds in bars] == [0, 2]
    heights = [float(each.get("height", "")) for each in cells[0] if each.get("class") == "bytes"]
    assert np.ptp(heights) < 0.1, "even afterwards"
