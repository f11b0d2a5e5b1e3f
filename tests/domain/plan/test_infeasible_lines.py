"""Notes on what a plan does not reach, a line for each cause."""

from __future__ import annotations

from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.plan.infeasible_lines import infeasible_lines, limit_lines
from rehome.domain.plan.infeasible_text import infeasible_text
from rehome.domain.resources import Resource


def of_broker(broker: int, wanted: float, nearest: float, why: Obstacle) -> Infeasible:
    return Infeasible(Subject.of_broker(broker), why, wanted, nearest, resource=Resource.BYTES)


FULL = [of_broker(b, 100e9, (90 - b) * 1e9, Obstacle.DISK_FULL) for b in range(6)]


def test_notes_of_one_cause_are_one_line_with_the_furthest_first() -> None:
    (line,) = infeasible_lines(FULL)
    assert line.startswith("broker 5: the broker's disk does not hold its share (wanted 100 GB, ")
    assert line.endswith("; 5 more of this kind: broker 0, broker 1, broker 2 and others")


def test_a_note_alone_is_its_line_and_causes_stay_apart() -> None:
    cap = of_broker(9, 5e9, 3e9, Obstacle.CAP)
    assert infeasible_lines([*FULL[:2], cap]) == (
        f"{infeasible_text(FULL[1])}; 1 more of this kind: broker 0",
        infeasible_text(cap),
    )
    assert infeasible_lines([]) == ()


def of_rack(name: str, brokers: int, why: Obstacle) -> Infeasible:
    rack = Subject(SubjectKind.RACK, name)
    return Infeasible(rack, why, 1e12, 2e12, resource=Resource.BYTES, amount=brokers)


def test_limits_of_the_cluster_are_no_failure_and_name_what_is_lacking() -> None:
    small = of_rack("/c", 1, Obstacle.RACKS_FORCE_MORE)
    large = of_rack("/a", 7, Obstacle.RACKS_ALLOW_NO_MORE)
    shifted = of_broker(3, 1e9, 2e9, Obstacle.SHIFTED_SHARE)
    assert infeasible_lines([small, large, shifted, FULL[0]]) == (infeasible_text(FULL[0]),)
    forced, allowed, _ = limit_lines([small, large, shifted, FULL[0]])
    assert "force more on its 1 broker: it has less capacity than others (wanted" in forced
    assert "allow no more on its 7 brokers: other racks have less capacity (wanted" in allowed


def test_amounts_that_read_the_same_are_told_by_their_difference() -> None:
    note = of_broker(1, 184_000_000_000, 184_002_000_000, Obstacle.NO_MOVE)
    assert infeasible_text(note).endswith("(wanted 184 GB, nearest 2 MB more)")
    less = of_broker(1, 184_000_000_000, 183_998_000_000, Obstacle.NO_MOVE)
    assert infeasible_text(less).endswith("(wanted 184 GB, nearest 2 MB less)")
