"""Ways to spoil plans so that they are not what the request asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rehome.domain.actions import Action
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.infeasible import Obstacle, Subject, SubjectKind
from rehome.domain.plan.plan_hash import seal
from rehome.domain.request.param_types import TOPIC_SPREAD
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import Resource
from rehome.quality.facts.gate_input import Checked
from tests.quality.plan.cases import (
    planned,
    with_move,
    with_moves,
    with_summary,
)
from tests.quality.plan.checked_plans import (
    COUNTED,
    DRAIN,
    REBALANCE,
    all_named,
    allowing,
    another_balance,
    another_topic,
    claiming,
    drain,
    emptied_donor,
    fixed,
    heavier,
    internal_topic,
    leaders_that_copy,
    left,
    lost_on_drained,
    move,
    named,
    of_budget,
    of_file,
    of_topics,
    one_sided,
    plus,
    raised,
    reassign,
    rebalance,
    repaired,
    resized,
    shrunk_badly,
    without_one,
)
from tests.quality.plan.rule_names import (
    AS_ASKED,
    BANDS,
    COUNT,
    EMPTY,
    FACTOR,
    FACTOR_FLAG,
    HAS_A_CAUSE,
    HASH,
    KEEPS_IN_SYNC,
    KEPT_OFFLINE,
    LEADER_IS_ABLE,
    LEFT_OUT,
    LOADS_STATED,
    ON_DRAINED,
    PAID_EMPTY,
    SCOPE,
    SHARE,
    SPREAD,
    TAKEN_ONLINE,
    UNPAID,
)
from tests.quality.snapshots import SIZE_BYTES, Rows

OF_REQUESTS: dict[str, tuple[Callable[[], Checked], set[str]]] = {
    "racks are named as a limit that they are not": (
        lambda: claiming(Subject(SubjectKind.RACK, "/0"), Obstacle.RACKS_FORCE_MORE),
        {HAS_A_CAUSE},
    ),
    "a share is called shifted where nothing shifts it": (
        lambda: claiming(Subject.of_broker(2), Obstacle.SHIFTED_SHARE),
        {HAS_A_CAUSE},
    ),
    "a disk is called full that is not": (
        lambda: claiming(Subject.of_broker(2), Obstacle.DISK_FULL),
        {HAS_A_CAUSE},
    ),
    "another topic": (
        lambda: of_topics(replace(DRAIN, topics=("payments",)), another_topic),
        {SCOPE},
    ),
    "an internal topic that only a pattern meets": (
        lambda: of_topics(replace(DRAIN, topics=("*",)), internal_topic),
        {SCOPE},
    ),
    "a partition beside the one that is asked for": (
        lambda: replace(drain(), request=replace(DRAIN, topics=("payments:2-3",))),
        {SCOPE},
    ),
    "partitions of one that begins alike": (
        lambda: replace(drain(), request=replace(DRAIN, topics=("payments:1",))),
        {SCOPE},
    ),
    "a topic that an expression matches in part": (
        lambda: of_topics(replace(DRAIN, topics=("re:payments|audi",)), another_topic),
        {SCOPE},
    ),
    "an internal topic that only an expression meets": (
        lambda: of_topics(replace(DRAIN, topics=("re:.*",)), internal_topic),
        {SCOPE},
    ),
    "an excluded partition": (
        lambda: replace(
            rebalance(),
            request=replace(
                REBALANCE, exclude_topics=(f"payments:{rebalance().plan.moves[0].partition[1]}",)
            ),
        ),
        {SCOPE},
    ),
    "a partition that is asked for stays on a drained broker": (
        lambda: with_moves(
            planned(Rows().snapshot(), replace(DRAIN, topics=("payments:2-3",))), []
        ),
        {EMPTY},
    ),
    "an excluded topic": (
        lambda: replace(rebalance(), request=replace(REBALANCE, exclude_topics=("pay*",))),
        {SCOPE},
    ),
    "a replica is left on a drained broker": (
        lambda: with_moves(drain(), drain().plan.moves[1:]),
        {EMPTY},
    ),
    "a replica that the budget pays for is left on a drained broker": (
        lambda: with_moves(of_budget(drain(), 6), drain().plan.moves[1:]),
        {PAID_EMPTY},
    ),
    "more stays on a drained broker than the summary says": (
        lambda: with_moves(of_budget(drain(), 4), of_budget(drain(), 4).plan.moves[1:]),
        {PAID_EMPTY},
    ),
    "a budget leaves a partition out that the summary is silent about": (
        lambda: with_summary(of_budget(raised(), 5), infeasible=()),
        {UNPAID},
    ),
    "a partition without a leader stays on a drained broker, and is not named": (
        lambda: with_summary(lost_on_drained(), infeasible=()),
        {EMPTY, SPREAD},
    ),
    "an online replica gets a new home": (
        lambda: with_move(fixed(), named(6), target=(1, 2)),
        {TAKEN_ONLINE},
    ),
    "an offline replica is kept": (
        lambda: with_move(fixed(), named(0), target=(2, 1)),
        {KEPT_OFFLINE, LEADER_IS_ABLE},
    ),
    "an offline replica is left, and is not named": (
        lambda: with_moves(fixed(), fixed().plan.moves[1:]),
        {LEFT_OUT},
    ),
    "what could get a new home is only named": (
        lambda: with_summary(
            with_moves(fixed(), fixed().plan.moves[1:]),
            infeasible=(left(fixed().plan.moves[0].partition, Obstacle.NO_BROKER),),
        ),
        {LEFT_OUT},
    ),
    "a drain moves something else": (
        lambda: plus(drain(), [move(0, (1, 2), (3, 2))]),
        {ON_DRAINED},
    ),
    "another factor than asked for": (
        lambda: with_move(raised(), named(0), target=raised().plan.moves[0].target[:2]),
        {"the replication factor is the requested one", "a move changes something"},
    ),
    "a partition keeps its old factor": (
        lambda: with_moves(raised(), raised().plan.moves[1:]),
        {LEFT_OUT},
    ),
    "a partition stays uneven": (
        lambda: with_moves(repaired(), repaired().plan.moves[1:]),
        {LEFT_OUT},
    ),
    "the controller may allow it": (lambda: allowing(drain()), {FACTOR_FLAG, HASH}),
    "another target than asked for": (
        lambda: with_move(reassign(), named(0), target=(3, 4)),
        {AS_ASKED},
    ),
    "another log dir than asked for": (
        lambda: with_move(reassign(), named(0), target_log_dirs=()),
        {AS_ASKED},
    ),
    "a file gives another factor than its request allows": (
        lambda: replace(resized(), request=of_file(1, 2, 3, resizes=False)),
        {FACTOR, FACTOR_FLAG},
    ),
    "another factor than the file's": (
        lambda: with_move(resized(), named(0), target=(3, 2)),
        {AS_ASKED, FACTOR_FLAG},
    ),
    "the controller may change factors, and the file changes none": (
        lambda: allowing(planned(Rows().snapshot(), of_file(1, 3))),
        {FACTOR_FLAG, HASH},
    ),
    "the controller may not change a factor that the file changes": (
        lambda: allowing(resized(), allow=False),
        {FACTOR_FLAG, HASH},
    ),
    "a file gives up replicas in sync for one that is not": (
        shrunk_badly,
        {KEEPS_IN_SYNC},
    ),
    "what was asked for is left out": (lambda: with_moves(reassign(), []), {LEFT_OUT}),
    "a broker that was not named takes": (
        lambda: replace(rebalance(), request=replace(REBALANCE, brokers=(0, 1, 2))),
        {"only brokers of the request lose or get replicas", SHARE},
    ),
    "an expansion into another broker": (
        lambda: replace(
            rebalance(),
            request=ReassignmentRequest(Action.EXPAND, brokers=(2,)),
            plan=seal(replace(rebalance().plan, action="expand")),
        ),
        {"only brokers of the request lose or get replicas"},
    ),
    "an expansion that empties one broker": (emptied_donor, {SHARE}),
    "a balance of leaders that copies": (
        leaders_that_copy,
        {"balancing leaders changes only the order of replicas"},
    ),
    "a move between log dirs that leaves its broker": (
        lambda: replace(
            leaders_that_copy(),
            request=ReassignmentRequest(Action.MOVE_LOG_DIRS),
            plan=seal(replace(leaders_that_copy().plan, action="move_log_dirs")),
        ),
        {"a move between log dirs stays on its broker"},
    ),
    "too many bytes for the budget": (
        lambda: replace(rebalance(), request=replace(REBALANCE, budget_bytes=SIZE_BYTES)),
        {"no more bytes are copied than the budget allows"},
    ),
    "too many moves for the budget": (
        lambda: replace(rebalance(), request=replace(REBALANCE, budget_moves=1)),
        {"no more replicas are copied than the budget allows"},
    ),
    "weights that were not heeded": (heavier, {SHARE}),
    "a tolerance of replicas that was not heeded": (
        lambda: replace(
            heavier(),
            request=replace(heavier().request, tolerances={**COUNTED, TOPIC_SPREAD: 0.1}),
        ),
        {SHARE, COUNT, SPREAD},
    ),
    "a partition in flight excuses no broker": (
        lambda: with_summary(
            heavier(), infeasible=(left(TopicPartition("payments", 0), Obstacle.IN_FLIGHT),)
        ),
        {SHARE},
    ),
    "what is named for another resource is no excuse": (
        lambda: with_summary(heavier(), infeasible=all_named(Resource.REPLICAS)),
        {SHARE},
    ),
    "a broker outside its band": (lambda: without_one(rebalance()), {SHARE, BANDS}),
    "a broker outside its band, and others named": (
        lambda: with_summary(
            without_one(rebalance()),
            infeasible=(
                left(TopicPartition("payments", 0), Obstacle.IN_FLIGHT),
                *all_named(Resource.REPLICAS),
            ),
        ),
        {SHARE, BANDS},
    ),
    "too much, where only that counts": (lambda: without_one(one_sided()), {SHARE, BANDS}),
    "another balance": (another_balance, {LOADS_STATED}),
    "a resource without a balance": (lambda: with_summary(drain(), resources=()), {LOADS_STATED}),
}
