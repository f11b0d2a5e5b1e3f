"""The judge of a soak finds each thing that must not be, and nothing where all is well."""

from __future__ import annotations

import json
import random
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from local.kafka.cluster import LocalCluster
from tests.e2e.soak.judge import Facts, Growth, Memory, RunEnd, SeenPartition, Wrong, judged
from tests.e2e.soak.outside import Outside, settings_in
from tests.e2e.soak.plans import Deck
from tests.e2e.soak.result import (
    DOCUMENT,
    KEPT,
    RESULT,
    growth_of,
    kept_lines_of,
    lines_of,
    stated_bytes,
)
from tests.e2e.soak.samples import Sample, memory_of
from tests.imports import imports_of

RATE = "broker 2 follower.replication.throttled.rate"
WELL = Facts(
    lost=0,
    unread=(),
    settings_before={"topic orders retention.ms": "1000"},
    settings={"topic orders retention.ms": "1000"},
    owner={},
    replicas={"orders": {0: SeenPartition((1, 2), (2, 1), 2)}},
    factors={"orders": {2}},
    brokers=frozenset({1, 2, 3}),
    plans={"p1": "done", "p2": "failed", "p3": "planned"},
    runs=(RunEnd("sweep_throttles", "r1", "success"),),
    memory=(Memory("scheduler", (100, 110, 90), (104, 105, 106)),),
)


def found(**changed: object) -> list[Wrong]:
    return [each.wrong for each in judged(replace(WELL, **changed))]  # type: ignore[arg-type]


def test_nothing_is_found_where_all_is_well() -> None:
    assert judged(WELL) == []


def test_a_lost_message_is_found() -> None:
    assert found(lost=1) == [Wrong.LOST]
    told = judged(replace(WELL, lost=1, unread=("orders-0: 1 acknowledged messages lost",)))
    assert [each.about for each in told] == ["orders-0: 1 acknowledged messages lost"]


def test_a_setting_that_is_left_changed_or_gone_is_found() -> None:
    assert found(settings={**WELL.settings, RATE: "5"}) == [Wrong.SETTING_LEFT]
    assert found(settings={"topic orders retention.ms": "2000"}) == [Wrong.SETTING_CHANGED]
    assert found(settings={}) == [Wrong.SETTING_CHANGED]


def test_what_another_client_has_set_stays_and_what_it_has_deleted_does_not() -> None:
    has = {**WELL.settings, RATE: "5"}
    assert found(settings=has, owner={RATE: "5"}) == []
    assert found(settings=has, owner={RATE: "6"}) == [Wrong.SETTING_CHANGED]
    assert found(settings=has, owner={RATE: None}) == [Wrong.SETTING_LEFT]
    assert found(owner={RATE: "5"}) == [Wrong.SETTING_CHANGED]


@pytest.mark.parametrize(
    "seen",
    [
        SeenPartition((1, 1), (1,), 1),
        SeenPartition((1, 9), (1, 9), 1),
        SeenPartition((1, 2, 3), (1, 2, 3), 1),
        SeenPartition((1, 2), (1,), 1),
        SeenPartition((1, 2), (1, 2), -1),
    ],
    ids=["twice", "no broker", "too many", "not in sync", "no leader"],
)
def test_replicas_that_are_not_intended_are_found(seen: SeenPartition) -> None:
    assert found(replicas={"orders": {0: seen}}) == [Wrong.REPLICAS]


def test_a_topic_that_is_gone_is_found() -> None:
    assert found(replicas={}) == [Wrong.REPLICAS]


def test_what_has_not_ended_is_found() -> None:
    assert found(plans={"p1": "running", "p2": "paused", "p3": "approved"}) == [Wrong.STUCK] * 3
    assert found(in_flight=("orders-0",)) == [Wrong.IN_FLIGHT]
    assert found(owed=("p1 broker 2 rate owed",)) == [Wrong.OWED]
    assert found(held=("reassign_partitions/r1",)) == [Wrong.HELD]
    assert found(runs=(RunEnd("d", "r", "running"),)) == [Wrong.RUN_OPEN]


def test_a_run_may_fail_by_a_fault_or_be_refused_and_for_nothing_else() -> None:
    failed = RunEnd("reassign_partitions", "r1", "failed")
    for run, wrong in (
        (failed, True),
        (replace(failed, kind="busy"), False),
        (replace(failed, kind="plan_failed"), True),
        (replace(failed, kind="plan_failed", faults=("broker killed",)), False),
        (replace(failed, kind="fault", faults=("broker killed",)), True),
        (replace(failed, kind="silent", faults=("broker killed",)), True),
        (replace(failed, kind="silent", faults=("task killed",), killed=True), False),
    ):
        assert found(runs=(run,)) == [Wrong.RUN] * wrong, run


@pytest.mark.parametrize("module", ["judge", "outside", "rows", "samples"])
def test_what_judges_and_what_reads_for_it_imports_nothing_of_rehome(module: str) -> None:
    path = Path(__file__).with_name(f"{module}.py")
    assert not [name for name, _ in imports_of(path) if name.split(".")[0] == "rehome"]


def test_memory_that_grows_is_found() -> None:
    grown = Memory("triggerer", (100, 100, 100), (106, 106, 90))
    assert found(memory=(grown,)) == [Wrong.MEMORY]
    assert found(memory=(replace(grown, last=(105, 105, 200)),)) == []
    assert found(memory=(replace(grown, restarted=True),)) == [Wrong.NOT_MEASURED]
    assert found(memory=(replace(grown, last=()),)) == [Wrong.NOT_MEASURED]


def test_memory_is_compared_over_the_second_half() -> None:
    samples = [
        Sample(at, {"triggerer": 1}, {"triggerer": int(at)}, {"triggerer": 1})
        for at in map(float, range(0, 3601, 60))
    ]
    memory = memory_of(samples, "triggerer")
    assert memory.first == (1800, 1860, 1920, 1980, 2040)
    assert memory.last == (3300, 3360, 3420, 3480, 3540, 3600)
    assert not memory.restarted
    anew = [replace(each, pids={"triggerer": 2}) if each.at > 2000 else each for each in samples]
    assert memory_of(anew, "triggerer").restarted


def test_everything_comes_once_before_anything_comes_again() -> None:
    deck = Deck("abc", random.Random(1))
    assert sorted(deck.draw() for _ in range(3)) == ["a", "b", "c"]
    first = deck.draw()
    deck.put_back(first)
    assert sorted(deck.draw() for _ in range(3)) == ["a", "b", "c"]


def test_settings_are_read_from_what_kafkas_tool_prints() -> None:
    said = """\
Dynamic configs for broker 2 are:
  follower.replication.throttled.rate=5 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:x=5}
Default configs for brokers in the cluster are:
  leader.replication.throttled.rate= sensitive=false synonyms={}
Dynamic configs for topic orders are:
"""
    rate = "leader.replication.throttled.rate"
    assert settings_in(said) == {RATE: "5", f"default of brokers {rate}": ""}


def test_a_tool_of_kafkas_that_fails_is_not_taken_for_one_that_finds_nothing() -> None:
    failed = subprocess.CompletedProcess([], 1, "", "Could not find or load main class")
    cluster = cast(
        LocalCluster,
        SimpleNamespace(
            client_settings=lambda: {"bootstrap.servers": "127.0.0.1:1"},
            run_tool=lambda *_: failed,
        ),
    )
    with pytest.raises(RuntimeError, match="Could not find or load main class"):
        Outside(cluster).in_flight()


def test_the_document_has_the_tables_of_the_committed_result() -> None:
    committed = json.loads(RESULT.read_text())
    assert "\n".join(lines_of(committed)) in DOCUMENT.read_text()
    assert committed["messages"]["lost"] == 0
    assert committed["wrong"] == []  # what it states, the next one is held against


def test_data_that_grow_by_more_than_is_stated_are_found() -> None:
    assert found(growth=(Growth("ledger", 1_500, 1_000),)) == []
    assert found(growth=(Growth("ledger", 1_501, 1_000),)) == [Wrong.DATA]


def test_growth_is_that_of_the_second_half_beside_what_is_stated_for_its_plans() -> None:
    none: dict[str, int] = {}
    samples = [
        Sample(at, none, none, none, {}, {"ledger": size, "warehouse": size}, {"plans": plans})
        for at, size, plans in ((0.0, 1, 0), (1800.0, 900_000, 5), (3600.0, 950_000, 7))
    ]
    samples.insert(2, Sample(1900.0, none, none, none))
    stated = {data: round(size) for data, size in stated_bytes(2).items()}
    assert growth_of(samples) == tuple(
        Growth(data, 50_000, stated[data]) for data in ("ledger", "warehouse")
    )


def test_what_is_stated_is_what_plans_of_the_committed_soak_have_left() -> None:
    committed = json.loads(RESULT.read_text())
    half = committed["growth"]["second_half"]["plans"]
    for data, stated in stated_bytes(half).items():
        assert stated / 1e6 == pytest.approx(committed["growth"][data]["half_growth_mb"], rel=0.01)
    assert "\n".join(kept_lines_of(committed)) in KEPT.read_text()
