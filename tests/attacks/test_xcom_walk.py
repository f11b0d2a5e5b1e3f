"""Every task of every DAG of ours, set to success by hand, or giving another value than it found.

The cases are made from the DAGs as they are stored. A policy asks a person, and no person answers:
so whatever a task is given by another one, and whoever says that an approval was given, the cluster
stays as it is.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rehome.domain.request.partition_counts import AddedPartitions
from tests.attacks.in_process import GUARDED, Attacked, forged, moving
from tests.attacks.listener import Trap
from tests.dags.runs import fresh_dag

if TYPE_CHECKING:
    from airflow.sdk import DAG

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
DAGS = sorted(
    path.stem for path in (ROOT / "dags").glob("*.py") if "dag = " in (text := path.read_text())
    or "as dag:" in text
)  # fmt: skip
ASKING = "approve"


@dataclass(frozen=True)
class Setting:
    """What an attacker finds, and what a run is to change.

    :param topic: whose first partition is to move, or that is to get partitions.
    :param theirs: a plan of somebody else's, of another topic, that nobody has approved.
    """

    topic: str
    theirs: str
    their_topic: str
    trap: Trap


KINDS: dict[str, Callable[[Setting], Any]] = {
    "nothing": lambda _: None,
    "rubbish": lambda _: "rubbish",
    "an address": lambda setting: setting.trap.hostile[0],
    "an address through a cache": lambda setting: setting.trap.hostile[1],
    "a file of the system's": lambda _: "file:///etc",
    "a path upwards": lambda _: "file:///tmp/warehouse/snapshots/cluster=../../../etc/taken_at=x",
    "another plan's id": lambda setting: setting.theirs,
    "parameters of a run": lambda setting: moving(
        setting.their_topic, [3, 1], plan_id=setting.theirs, approval=False
    ),
    "several runs": lambda setting: [
        {
            "trigger_run_id": "watch__forged",
            "conf": moving(setting.their_topic, [3, 1], plan_id=setting.theirs, approval=False),
        }
    ],
    "a wrong type": lambda _: [1, None, {"a": 2.5}],
    "a template": lambda _: "{{ conn.kafka_default.extra }}",
    "large": lambda _: "x" * 1_000_000,
    "deep": lambda _: json.loads("[" * 200 + "]" * 200),
}


class Way(enum.Enum):
    """How a task is attacked. What comes before the question does its work in each of them: there
    is a plan, and everything but the approval.
    """

    INSTEAD = enum.auto()
    """It gives the value, and does nothing else: as one that was set to success by hand."""
    AFTER = enum.auto()
    """It does its work, and then gives the value."""
    ALONE = enum.auto()
    """Behind the question it alone does its work: all others there give the value."""


@dataclass(frozen=True)
class Case:
    """One kind of value, given to one task or by it."""

    task: str
    kind: str
    way: Way


def cases_of(dag: DAG) -> list[Case]:
    """All of a DAG: the tasks as Airflow stores them."""
    from airflow.serialization.serialized_objects import DagSerialization

    stored = DagSerialization.to_dict(dag)["dag"]["tasks"]
    behind, found = behind_the_question(dag), list[Case]()
    for task in (str(each["__var"]["task_id"]) for each in stored):
        for kind in KINDS:
            ways = (Way.ALONE,) if task in behind else (Way.INSTEAD, Way.AFTER)
            found += [Case(task, kind, each) for each in ways]
    return [case for case in found if (case.kind, case.way) != ("nothing", Way.AFTER)]


def behind_the_question(dag: DAG) -> set[str]:
    """The tasks that have their turn only when somebody has answered."""
    asking = (dag.get_task(task) for task in dag.task_ids if is_asking(task))
    return {task for each in asking for task in each.get_flat_relative_ids(upstream=False)}


def is_asking(task: str) -> bool:
    """Whether a task asks a person."""
    return task.rsplit(".", 1)[-1] == ASKING


def spread(cases: list[Case], count: int) -> Iterator[Case]:
    """So many of them: over all tasks by turns, and over all kinds, an address of the first."""
    by_task: dict[str, list[Case]] = {}
    for case in cases:
        by_task.setdefault(case.task, []).append(case)
    for turn in range(count):
        tasks = list(by_task)
        mine = by_task[tasks[turn % len(tasks)]]
        yield mine[(3 + turn * 7 + turn // len(tasks)) % len(mine)]


@pytest.fixture
def setting(attacked: Attacked, trap: Trap) -> Setting:
    """Two topics, and somebody's plan."""
    topic, other = attacked.topics.create([[1, 2]]), attacked.topics.create([[1, 2]])
    made = attacked.run("reassign_partitions", **moving(other, [3, 1], dry_run=True))
    assert made.state == "success", made.log
    attacked.patch.setenv("REHOME_WINDOW_CRON", "0 * * * *")  # it is open
    attacked.patch.setenv("REHOME_WINDOW_DURATION_S", "7200")
    plan_id = json.loads(attacked.plan_file("summary.json").read_text())["plan_id"]
    return Setting(topic, plan_id, other, trap)


def conf_of(dag_id: str, setting: Setting) -> dict[str, Any]:
    """Of a run that changes the cluster, if a person approves it."""
    match dag_id:
        case "add_partitions":
            return {"partitions": {setting.topic: 2}, "kafka_config_id": GUARDED}
        case "reassign_partitions" | "rebalance_in_window":
            return moving(setting.topic, [3, 1])
        case "control_reassignment":
            return {"plan_id": setting.theirs, "action": "run", "kafka_config_id": GUARDED}
        case "collect_snapshots" | "sweep_throttles":
            return {"kafka_config_id": GUARDED}
        case _:
            return {}


def by_hand(attacked: Attacked) -> Callable[[Any], Any]:
    """What a given approval leaves in XComs: the approver, and of new partitions their hash."""

    def write(context: Any) -> Any:
        context["ti"].xcom_push(key="approver", value="ops")
        placed = attacked.plan_files("new_partitions.json")
        if not placed:
            return {"chosen_options": ["Approve"], "params_input": {}}
        return AddedPartitions.from_json(json.loads(placed[-1].read_text())).plan_hash

    return write


def walked(attacked: Attacked, setting: Setting, dag_id: str, cases: list[Case]) -> list[str]:
    """Try each; what has changed the cluster, or asked for something elsewhere."""
    found: list[str] = []
    before = attacked.witness.seen()
    for case in cases:
        dag = fresh_dag(dag_id)
        value = KINDS[case.kind](setting)
        for task in dag.task_ids:
            if is_asking(task):  # nobody has answered
                forged(dag, task, by_hand(attacked))
        if case.way is Way.ALONE:
            for task in behind_the_question(dag) - {case.task}:
                forged(dag, task, value)
        else:
            forged(dag, case.task, value, instead=case.way is Way.INSTEAD)
        attacked.run(dag, **conf_of(dag_id, setting))
        if attacked.witness.seen() != before:
            found.append(f"{dag_id}: {case}: the cluster has changed")
            before = attacked.witness.seen()
        if setting.trap.heard:
            found.append(f"{dag_id}: {case}: {setting.trap.heard[0][:60]}")
            setting.trap.heard.clear()
    return found


IN_SHORT = {"add_partitions": 5, "reassign_partitions": 4}
"""Cases that `make test` walks; of the other DAGs one each."""


def test_no_value_of_a_task_changes_the_cluster(attacked: Attacked, setting: Setting) -> None:
    """Some of all cases: `make test-thorough` walks every one."""
    found: list[str] = []
    for dag_id in DAGS:
        every = cases_of(fresh_dag(dag_id))
        cases = [*spread(every, IN_SHORT.get(dag_id, 1))]
        tasks = len({case.task for case in every})
        attacked.tell(
            f"{dag_id}: {tasks} tasks x {len(KINDS)} kinds: {len(cases)} of {len(every)} cases"
        )
        found += walked(attacked, setting, dag_id, cases)
    assert found == []


@pytest.mark.long
@pytest.mark.parametrize("dag_id", DAGS)
def test_not_one_value_of_any_task_changes_the_cluster(
    attacked: Attacked, setting: Setting, dag_id: str
) -> None:
    every = cases_of(fresh_dag(dag_id))
    attacked.tell(f"{dag_id}: all of {len(every)} cases")
    assert walked(attacked, setting, dag_id, every) == []
