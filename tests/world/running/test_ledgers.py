"""Real ledgers in memory: apart from each other, anew for each run, restored from backups."""

from __future__ import annotations

from rehome.domain import clock
from rehome.ledger.base.database import LedgerUnavailableError
from tests.ledger.small_plans import make_plan
from world.running.ledgers import LedgerSite
from world.running.outside import VirtualTime
from world.running.scheduler import Scheduler


def site(name: str, scheduler: Scheduler | None = None) -> LedgerSite:
    scheduler = scheduler or Scheduler(1)
    with clock.replaced_by(VirtualTime(scheduler, 1)):
        return LedgerSite(name, scheduler)


def record(where: LedgerSite, plan_id: str) -> None:
    where.ledger().create_plan(make_plan(plan_id), {}, "memory://", "run-1", "alice")


def plans(where: LedgerSite) -> list[str]:
    return sorted(plan.plan_id for plan in where.ledger().plans())


def test_two_installations_have_two_ledgers() -> None:
    one, other = site("A"), site("B")
    record(one, "p1")
    assert plans(one) == ["p1"]
    assert plans(other) == []


def test_the_next_run_begins_with_an_empty_one() -> None:
    record(site("A"), "p1")
    assert plans(site("A")) == []


def test_a_backup_that_is_restored_knows_nothing_of_what_came_after_it() -> None:
    where = site("A")
    record(where, "p1")
    where.back_up()
    record(where, "p2")
    assert where.restore()
    assert plans(where) == ["p1"]


def test_one_that_is_away_says_so_as_a_real_one_does() -> None:
    scheduler = Scheduler(1)
    where = site("A", scheduler)
    where.away = True
    actor = scheduler.spawn("A:task", lambda: plans(where))
    scheduler.run(1)
    assert isinstance(actor.error, LedgerUnavailableError)


def test_others_run_between_transactions_and_never_within_one() -> None:
    scheduler = Scheduler(3)
    where, inside = site("A", scheduler), []

    def write(number: int) -> None:
        for round_ in range(5):
            record(where, f"p{number}-{round_}")

    for number in range(3):
        scheduler.spawn(f"{number}", lambda number=number: write(number))  # type: ignore[misc]
    scheduler.on_point = lambda *_: inside.append(where.inside)
    scheduler.run(1)
    assert len(plans(where)) == 15
    assert set(inside) == {False}
