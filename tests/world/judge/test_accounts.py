"""The judge of accounts finds each thing that is not so, and nothing in a run that went well."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rehome.account.account import PlanAccount, account_of
from rehome.account.known import Known, Source
from rehome.account.times import EndRange
from rehome.domain.clock import utc_now
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.states import PlanState
from world.judge import accounts
from world.running.trace import Trace
from world.script import Do, Plan, Script, Topic, What
from world.stage import Stage

MOVES = (("t", 0, (3, 2)), ("t", 1, (2, 4)))
SCRIPT = Script(
    1,
    4,
    (Topic("t", ((1, 2), (2, 3)), 40_000_000, inflow=10_000),),
    (Plan("A", MOVES),),
    does=(Do(1.0, "A", What.START, (0,)),),
    quiet_s=200.0,
)
LOSING = replace(SCRIPT, does=(*SCRIPT.does, Do(25.0, "fate", What.BROKER_LOST, (4,))))
Spoil = Callable[[PlanAccount], PlanAccount]


def judged(patch: pytest.MonkeyPatch, spoil: Spoil, script: Script = LOSING) -> list[str]:
    """What is found in a run whose accounts are spoilt."""
    real = account_of
    patch.setattr(accounts, "account_of", lambda *args: spoil(real(*args)))
    stage = Stage(script, Trace())
    try:
        stage.run()
    finally:
        stage.end()
    assert stage.accounts.read
    return [violation.text for violation in stage.accounts.violations]


@pytest.mark.slow
def test_a_true_account_has_nothing_false(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged(monkeypatch, lambda account: account) == []


FILLED = Script(
    293,
    3,
    (Topic("u", ((2, 3), (3, 1)), 120_000_000, inflow=50_000, min_isr=2),),
    (Plan("A", (("u", 1, (3, 2)),), rate=1_000_000),),
    does=(Do(10.8, "A", What.START, (0,)), Do(48.8, "fate", What.DISK_FILLED, (2, 1))),
    quiet_s=400.0,
)


@pytest.mark.slow
def test_a_copy_may_have_grown_before_its_log_dir_failed_within_a_poll(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert judged(monkeypatch, lambda account: account, FILLED) == []


def copied(**changes: Any) -> Spoil:
    def spoil(account: PlanAccount) -> PlanAccount:
        copying = account.bytes.copying
        if not isinstance(copying, Known):
            return account
        other = copying.as_(lambda found: replace(found, **changes))
        return replace(account, bytes=replace(account.bytes, copying=other))

    return spoil


def of_broker_1(account: PlanAccount) -> PlanAccount:
    return replace(account, hurts=(Hurt(HurtKind.DEAD_BROKERS, (1,), 1),))


def ends_soon(account: PlanAccount) -> PlanAccount:
    at = utc_now() + timedelta(seconds=10)
    return replace(account, ends=Known(EndRange(at, at, at), at, Source.POLL))


def twice_as_fast(account: PlanAccount) -> PlanAccount:
    if not isinstance(account.pace, Known):
        return account
    return replace(account, pace=account.pace.as_(lambda p: replace(p, total=2 * p.total + 9)))


def without_controls(account: PlanAccount) -> PlanAccount:
    return replace(account, controls=() if account.state is PlanState.RUNNING else account.controls)


def none_hurts(account: PlanAccount) -> PlanAccount:
    return replace(account, hurts=())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (copied(total=1), "its parts make"),
        (of_broker_1, "brokers [1] are not alive; they were"),
        (none_hurts, "brokers [4] are dead, and moves need them: not said"),
        (ends_soon, "it ends by itself, and brokers [4] are dead"),
        (twice_as_fast, "its partitions make"),
        (without_controls, "cannot be cancelled"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_each_false_fact_is_found(
    monkeypatch: pytest.MonkeyPatch, spoil: Spoil, found: str
) -> None:
    assert any(found in text for text in judged(monkeypatch, spoil))


@pytest.mark.slow
def test_bytes_that_are_in_no_copy_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for changes in ({"in_place": 10**9}, {"in_place": 0}):
        found = judged(monkeypatch, copied(**changes), SCRIPT)
        assert any("of copies in flight are in place" in text for text in found)
