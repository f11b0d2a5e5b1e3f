"""What the judge must find, in histories that no run of Rehome's has made."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from rehome.domain.claims import AsFound, InFlight
from rehome.domain.configs import ConfigOperation, ConfigResource
from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.run.states import PlanState
from world.history import OTHERS, Alter, ConfigWrite, DirAsked, History, IsrTaken
from world.judge.configs import Ledgers
from world.judge.judge import MOST_CALLS, Seen, judge
from world.judge.placement import LetAct
from world.judge.plan_seen import PlanSeen
from world.judge.statements import Statement
from world.judge.violations import Kind
from world.kafka.metadata import MetadataLog, Partition, PartitionKey, Table
from world.others import LISTS, RATES
from world.rehome.installation import Spent
from world.running.outside import EPOCH

PART = TopicPartition("t", 0)
KEY = PartitionKey("id-of-t", 0)
REPLICA = ReplicaId("t", 0, 1)
COPYING = Partition((3, 2, 1), (1, 2), 1, adding=(3,), removing=(1,))


def seen(history: History, **changes: object) -> Seen:
    empty = Seen(
        history=history,
        log=history.log,
        plans=(),
        statements=(),
        false_accounts=(),
        open_entries=(),
        never_ended=(),
        waits_unnamed=(),
        cancelled_in_vain=(),
        crashes=(),
        lost={},
        spent={},
        ended_at=100.0,
    )
    return replace(empty, **changes)  # type: ignore[arg-type]


def kinds(found: Seen) -> set[Kind]:
    return {violation.kind for violation in judge(found).violations}


def world() -> History:
    history = History(MetadataLog())
    topic = [Table("topics", "t", KEY.topic_id), Table("names", KEY.topic_id, "t")]
    history.log.append(0.0, [*topic, Table("partitions", KEY, Partition((1, 2), (1, 2), 1))])
    history.begin()
    return history


def test_of_a_world_in_which_nothing_happens_nothing_is_found() -> None:
    assert kinds(seen(world())) == set()


@pytest.mark.parametrize(
    ("owner", "before", "after", "found"),
    [
        ("A", 2, 1, {Kind.BELOW_MIN_ISR}),
        ("A", 1, 1, set()),
        ("A", 3, 2, set()),
        (OTHERS, 2, 1, set()),
    ],
)
def test_a_call_of_ours_takes_no_partition_below_its_min_isr(
    owner: str, before: int, after: int, found: set[Kind]
) -> None:
    history = world()
    history.taken.append(IsrTaken(5.0, owner, PART, before, after, 2))
    assert kinds(seen(history)) == found


def test_a_replica_goes_where_it_is_planned_to_or_back() -> None:
    plan = PlanSeen(
        plan_id="p",
        by="A",
        moves={},
        record=None,
        log_dirs=frozenset({(REPLICA, "/data/1")}),
        admitted=frozenset(),
        able=[],
        throttled=True,
    )
    history = world()
    history.dirs += [
        DirAsked(1.0, "A", REPLICA, "/data/1", "/data/0"),
        DirAsked(2.0, "A", REPLICA, "/data/0", "/data/0"),
        DirAsked(3.0, OTHERS, REPLICA, "/data/2", "/data/0"),
    ]
    assert kinds(seen(history, plans=[plan])) == set()
    history.dirs.append(DirAsked(4.0, "A", REPLICA, "/data/3", "/data/0"))
    assert kinds(seen(history, plans=[plan])) == {Kind.WRONG_LOG_DIR}


@pytest.mark.parametrize("what", Spent)
def test_calls_stay_below_a_stated_number(what: Spent) -> None:
    stated = MOST_CALLS[what]
    assert kinds(seen(world(), spent={"A": {what: [3, stated]}})) == set()
    assert kinds(seen(world(), spent={"A": {what: [3, stated + 1]}})) == {Kind.TOO_MANY_CALLS}


def test_a_plan_that_waits_names_whom() -> None:
    plan = PlanSeen("p", "A", {}, None, frozenset(), frozenset(), [], True)
    assert kinds(seen(world(), plans=[plan], waits_unnamed=["p"])) == {Kind.NAMES_NOBODY}


@pytest.mark.parametrize(("taker", "found"), [("A", True), (OTHERS, False)])
def test_a_copy_of_others_keeps_the_throttle_that_they_want(taker: str, found: bool) -> None:
    history = world()
    topic, default = ConfigResource.topic("t"), ConfigResource.cluster_default()
    wanted = [(topic, LISTS[1], "0:3"), (default, RATES[1], "1000000")]
    for at, (resource, key, value) in enumerate(wanted, 1):
        write(history, at, OTHERS, resource, key, None, value)
    history.alters.append(Alter(3, 3.0, OTHERS, "tool", PART, (3, 2)))
    history.log.append(3.0, [Table("partitions", KEY, COPYING)])
    assert kinds(seen(history)) == set()
    write(history, 4, taker, default, RATES[1], "1000000", None)
    history.log.append(9.0, [Table("partitions", KEY, Partition((3, 2), (2, 3), 2))])
    assert (Kind.FOREIGN_UNTHROTTLED in kinds(seen(history))) is found


def write(
    history: History,
    at: int,
    owner: str,
    resource: ConfigResource,
    key: str,
    before: str | None,
    after: str | None,
) -> None:
    how = ConfigOperation.DELETE if after is None else ConfigOperation.SET
    process = f"{owner}:x"
    written = ConfigWrite(at, float(at), owner, process, resource, key, before, after, how, at)
    history.writes.append(written)


@pytest.mark.parametrize(
    ("listed", "target", "found"),
    [(5, None, True), (5, (3, 1), True), (5, (3, 2), False), (2, None, False)],
)
def test_a_reassignment_of_others_is_left_alone_where_it_could_be_seen(
    listed: int, target: tuple[int, int] | None, found: bool
) -> None:
    history = world()
    history.alters.append(Alter(3, 3.0, OTHERS, "tool", PART, (3, 2)))
    history.log.append(3.0, [Table("partitions", KEY, COPYING)])
    history.alters.append(Alter(6, 6.0, "A", "A:x", PART, target, listed))
    history.log.append(6.0, [Table("partitions", KEY, Partition((1, 2), (1, 2), 1))])
    assert (Kind.TAKEN_OVER in kinds(seen(history))) is found


@pytest.mark.parametrize(("listed", "found"), [(2, False), (4, True)])
def test_what_both_have_asked_for_unseen_nobody_can_tell_apart(listed: int, found: bool) -> None:
    history = world()
    history.alters.append(Alter(3, 3.0, OTHERS, "tool", PART, (3, 2)))
    history.log.append(3.0, [Table("partitions", KEY, COPYING)])
    history.alters.append(Alter(5, 4.0, "A", "A:x", PART, (3, 2), listed))
    history.alters.append(Alter(7, 6.0, "A", "A:x", PART, None, 6))
    history.log.append(6.0, [Table("partitions", KEY, Partition((1, 2), (1, 2), 1))])
    assert (Kind.TAKEN_OVER in kinds(seen(history))) is found


@pytest.mark.parametrize(
    ("theirs", "target", "found"),
    [
        ((3, 2), (1, 2, 3), False),  # what theirs removes goes, in the order of ours
        ((3, 2), (4, 1, 2), True),  # not all of its replicas: it is replaced
        ((4, 2), (1, 2, 3), True),  # nobody but us has asked for it
    ],
)
def test_two_reassignments_that_the_controller_makes_one_of_have_an_order_of_their_own(
    theirs: tuple[int, int], target: tuple[int, int, int], found: bool
) -> None:
    history = world()
    history.alters.append(Alter(3, 3.0, OTHERS, "tool", PART, theirs))
    history.log.append(3.0, [Table("partitions", KEY, COPYING)])
    history.alters.append(Alter(6, 6.0, "A", "A:x", PART, target, 2))
    both = replace(COPYING, replicas=target)
    history.log.append(6.0, [Table("partitions", KEY, both)])
    history.log.append(9.0, [Table("partitions", KEY, Partition((2, 3), (2, 3), 2))])
    assert (Kind.MISPLACED in kinds(seen(history))) is found


@pytest.mark.parametrize(
    ("run", "named", "at", "found"),
    [
        ("A:foreign-1", 4, 5.0, False),
        ("A:foreign-1", 2, 5.0, True),  # it had begun after what was named
        ("A:foreign-1", 4, 7.0, True),  # the answer came later
        ("A:foreign-2", 4, 5.0, True),  # another run's
    ],
)
def test_a_person_may_have_cancelled_what_was_named(
    run: str, named: int, at: float, found: bool
) -> None:
    history = world()
    history.alters.append(Alter(3, 3.0, OTHERS, "tool", PART, (3, 2)))
    history.log.append(3.0, [Table("partitions", KEY, COPYING)])
    history.alters.append(Alter(6, 6.0, "A", "A:foreign-1.cancel", PART, None, 5))
    history.log.append(6.0, [Table("partitions", KEY, Partition((1, 2), (1, 2), 1))])
    let = replace(seen(history), let_act={run: LetAct(named, at)})
    assert (Kind.TAKEN_OVER in kinds(let)) is found
    for about, other in (("t", False), ("t:0", False), ("t:1", True), ("u", True)):
        of_it = replace(let, let_act={run: LetAct(named, at, about)})
        assert (Kind.TAKEN_OVER in kinds(of_it)) is (found or other)


def test_what_a_ledger_that_is_gone_has_left_is_named_by_the_new_one() -> None:
    history, default = world(), ConfigResource.cluster_default()
    write = ConfigWrite(1, 5.0, "A", "A:x", default, RATES[0], None, "9", ConfigOperation.SET, None)
    history.writes.append(write)
    left = seen(history)
    named = {"A": frozenset({(default, RATES[0])})}
    assert kinds(left) == {Kind.LEFT_BEHIND}
    assert kinds(replace(left, ledgers=replaced(6.0))) == {Kind.LEFT_BEHIND}
    assert kinds(replace(left, ledgers=replaced(4.0), named=named)) == {Kind.LEFT_BEHIND}
    assert kinds(replace(left, ledgers=replaced(6.0), named=named)) == set()


def replaced(*times: float) -> Ledgers:
    """A new ledger takes the place of the one before at each of these times."""
    return Ledgers({"A": [(0.0, "a"), *((at, f"b{at}") for at in times)]})


@pytest.mark.parametrize(
    ("own", "end", "found"),
    [
        ("0:1,1:2", "0:1", set()),  # its own item is gone: what is left is the lost ledger's
        ("0:1,1:2", "0:1,1:2", {Kind.LEFT_BEHIND}),
        ("0:1,1:2", "1:2", {Kind.LEFT_BEHIND}),
        ("0:1", "0:1", set()),  # it needed the same: that was there before
    ],
)
def test_a_new_ledger_answers_for_what_it_has_put_on_a_list_beside_what_was_lost(
    own: str, end: str, found: set[Kind]
) -> None:
    history, topic = world(), ConfigResource.topic("t")
    before: str | None = None
    for at, after in ((5.0, "0:1"), (7.0, own), (9.0, end)):
        written = ConfigWrite(
            int(at), at, "A", "A:x", topic, LISTS[0], before, after, ConfigOperation.SET, None
        )
        history.writes.append(written)
        before = after
    left = replace(seen(history), named={"A": frozenset({(topic, LISTS[0])})})
    assert kinds(replace(left, ledgers=replaced(6.0))) == found
    assert kinds(replace(left, ledgers=replaced(4.0))) == {Kind.LEFT_BEHIND}
    said = Statement("A", "p", "clear", (AsFound(((topic, LISTS[0]),)),), 9.0, 9.5)
    told = replace(left, ledgers=replaced(6.0), statements=[said])
    assert (Kind.FALSE_CLAIM in kinds(told)) is (Kind.LEFT_BEHIND in found)


@pytest.mark.parametrize(
    ("gone_at", "said_lost", "found"),
    [
        (50.0, frozenset(), {Kind.FAILED_FOR_NOTHING}),
        (79.0, frozenset(), {Kind.FAILED_FOR_NOTHING}),
        (81.0, frozenset(), set()),  # its last step had begun
        (95.0, frozenset(), set()),
        (50.0, frozenset({"t-0"}), set()),
    ],
)
def test_a_plan_fails_by_what_was_there_when_it_ended(
    gone_at: float, said_lost: frozenset[str], found: set[Kind]
) -> None:
    history = world()
    history.log.append(gone_at, [Table("partitions", KEY, None)])
    failed: Any = SimpleNamespace(
        state=PlanState.FAILED,
        started_at=EPOCH,
        ended_at=EPOCH + timedelta(seconds=90),
        cause="1 cancelled",
    )
    plan = PlanSeen(
        plan_id="p",
        by="A",
        moves={PART: (KEY.topic_id, (3, 2))},
        record=failed,
        log_dirs=frozenset(),
        admitted=frozenset(),
        able=[],
        throttled=False,
        undisturbed=True,
        said_lost=said_lost,
    )
    step = Statement("A", "p", "progress", (InFlight(0),), since=80.0, at=90.5)
    assert kinds(seen(history, plans=(plan,), statements=(step,))) == found


@pytest.mark.parametrize(
    ("approved_s", "found"),
    [(None, set()), (5.0, set()), (20.0, {Kind.UNAPPROVED}), (float("inf"), {Kind.UNAPPROVED})],
)
def test_nothing_is_sent_before_the_person_has_approved_that_has_to(
    approved_s: float | None, found: set[Kind]
) -> None:
    history = world()
    history.altered(10.0, "A", "A:execute", {PART: (3, 2)})
    moves = {PART: (KEY.topic_id, (3, 2))}
    plan = PlanSeen("p", "A", moves, None, frozenset(), frozenset(), [], False)
    assert kinds(seen(history, plans=(replace(plan, approved_s=approved_s),))) == found


ASKED = Alter(1, 5.0, "A", "run", PART, (3, 2))
OTHERS_ASKED = Alter(2, 5.0, OTHERS, "tool", PART, (3, 2))


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ((ASKED,), {Kind.GOES_ON}),
        ((replace(ASKED, at=4.0, target=None), OTHERS_ASKED), set()),
        ((ASKED, replace(OTHERS_ASKED, at=6.0)), {Kind.GOES_ON}),
    ],
)
def test_what_goes_on_of_a_plan_is_its_own_unless_another_has_begun_it(
    asked: tuple[Alter, ...], found: set[Kind]
) -> None:
    history = world()
    history.alters.extend(asked)
    history.log.append(5.0, [Table("partitions", KEY, COPYING)])
    ended: Any = SimpleNamespace(
        state=PlanState.FAILED, started_at=None, ended_at=EPOCH + timedelta(seconds=90), cause=""
    )
    moves = {PART: (KEY.topic_id, (3, 2))}
    plan = PlanSeen("p", "A", moves, ended, frozenset(), frozenset(), [], False)
    assert kinds(seen(history, plans=[plan])) == found


ALL_AT_ONCE = replace(COPYING, replicas=(3, 4, 1, 2), adding=(3, 4), removing=(1, 2))


@pytest.mark.parametrize(
    ("at_once", "found"), [(None, set()), (2, set()), (1, {Kind.TOO_MANY_NEW})]
)
def test_no_more_new_replicas_come_at_once_than_may(at_once: int | None, found: set[Kind]) -> None:
    history = world()
    history.log.append(5.0, [Table("partitions", KEY, ALL_AT_ONCE)])
    moves, before = {PART: (KEY.topic_id, (3, 4))}, {PART: (1, 2)}
    plan = PlanSeen("p", "A", moves, None, frozenset(), frozenset(), [], False, before=before)
    assert kinds(seen(history, plans=[replace(plan, at_once=at_once)])) == found


def test_new_replicas_that_another_client_has_asked_for_are_not_the_plans() -> None:
    history = world()
    history.log.append(5.0, [Table("partitions", KEY, ALL_AT_ONCE)])
    moves, before = {PART: (KEY.topic_id, (3, 4))}, {PART: (1, 2)}
    plan = PlanSeen("p", "A", moves, None, frozenset(), frozenset(), [], False, before=before)
    by_plan = Alter(1, 4.0, "A", "run", PART, (3, 4))
    for asked, found in ((by_plan, {Kind.TOO_MANY_NEW}), (replace(by_plan, owner="others"), set())):
        history.alters = [asked]
        assert kinds(seen(history, plans=[replace(plan, at_once=1)])) & {Kind.TOO_MANY_NEW} == found


def test_a_step_is_what_a_plan_asks_for_and_not_where_it_may_leave_a_partition() -> None:
    moves, before = {PART: (KEY.topic_id, (3, 4, 5))}, {PART: (1, 2)}
    plan = PlanSeen("p", "A", moves, None, frozenset(), frozenset(), [], False, before=before)
    stepped = replace(plan, at_once=1)
    assert stepped.lists[KEY] == {(1, 2, 3), (1, 2, 3, 4), (3, 4, 5)}
    assert plan.lists[KEY] == {(3, 4, 5)}
    history = world()
    history.log.append(5.0, [Table("partitions", KEY, Partition((1, 2, 3), (1, 2, 3), 1))])
    ended: Any = SimpleNamespace(
        state=PlanState.CANCELLED, started_at=None, ended_at=EPOCH + timedelta(seconds=90), cause=""
    )
    left = replace(stepped, record=ended)
    assert kinds(seen(history, plans=[left])) == {Kind.MISPLACED}
