"""Actors run one at a time, in an order that the seed fixes; a dead one runs nothing any more."""

from __future__ import annotations

import pytest

from world.running.scheduler import Ended, Point, Scheduler, Stuck


def order(seed: int) -> list[str]:
    scheduler, ran = Scheduler(seed), []

    def act(name: str) -> None:
        for _ in range(4):
            ran.append(name)
            scheduler.point(Point.CALL, "something")

    for name in "abc":
        scheduler.spawn(name, lambda name=name: act(name))  # type: ignore[misc]
    scheduler.run(1)
    return ran


def test_the_seed_fixes_the_order() -> None:
    assert order(1) == order(1)
    assert len({tuple(order(seed)) for seed in range(20)}) > 10


def test_time_passes_only_while_all_wait() -> None:
    scheduler, seen = Scheduler(1), []

    def act(seconds: float) -> None:
        scheduler.wait(seconds)
        seen.append((seconds, scheduler.at_s))

    for seconds in (30.0, 10.0, 20.0):
        scheduler.spawn(f"{seconds}", lambda seconds=seconds: act(seconds))  # type: ignore[misc]
    scheduler.run(25)
    assert seen == [(10.0, 10.0), (20.0, 20.0)]
    assert scheduler.at_s == 25
    scheduler.run(100)
    assert seen[-1] == (30.0, 30.0)


def test_of_one_that_is_killed_nothing_runs_neither_finally_nor_except() -> None:
    scheduler, ran = Scheduler(1), []

    def act() -> None:
        try:
            scheduler.wait(5)
        finally:
            ran.append("cleaned up")

    killed = scheduler.spawn("a", act)

    def kills() -> None:
        scheduler.wait(1)
        scheduler.kill(killed)

    scheduler.spawn("b", kills)
    scheduler.run(100)
    assert killed.ended is Ended.DIED
    assert ran == []


def test_what_a_dead_process_left_behind_may_touch_nothing() -> None:
    scheduler, reached = Scheduler(1), []

    def act() -> None:
        try:
            scheduler.point(Point.CALL, "one")
        finally:
            scheduler.point(Point.CALL, "two")
            reached.append("two")

    dying = scheduler.spawn("a", act)
    dying.faults[1] = lambda: scheduler.kill(dying)
    scheduler.run(10)
    scheduler.abandon()
    assert reached == []
    assert dying.points == 1


def test_who_waits_for_another_goes_on_when_that_has_ended_however_it_did() -> None:
    scheduler, seen = Scheduler(1), list[tuple[Ended | None, float]]()

    def fails() -> None:
        scheduler.wait(7)
        raise ValueError

    def waits() -> None:
        for other in (fails_at_7, dies):
            assert scheduler.join(other)
            seen.append((other.ended, scheduler.at_s))

    fails_at_7 = scheduler.spawn("fails", fails)
    dies = scheduler.spawn("dies", lambda: scheduler.wait(1000))
    scheduler.spawn("waits", waits)

    def kills() -> None:
        scheduler.wait(9)
        scheduler.kill(dies)

    scheduler.spawn("kills", kills)
    scheduler.run(100)
    assert seen == [(Ended.RAISED, 7.0), (Ended.DIED, 9.0)]


@pytest.mark.slow
def test_a_loop_in_which_no_time_passes_is_found() -> None:
    scheduler = Scheduler(1)

    def act() -> None:
        while True:
            scheduler.point(Point.CALL, "again")

    scheduler.spawn("a", act)
    with pytest.raises(Stuck):
        scheduler.run(10)
