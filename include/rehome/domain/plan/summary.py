"""What an approver reads of a plan: ``summary.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from rehome.domain.kafka import BrokerId
from rehome.domain.plan.figures import (
    BudgetPoint,
    LeaderMinimums,
    Link,
    ResourceBalance,
    TargetPrice,
    TopicBalance,
    Weakened,
    balance_from_json,
)
from rehome.domain.plan.infeasible import Infeasible, infeasible_from_json


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """What a broker holds before and after the plan.

    Sizes count each replica with its partition's size; leaders are preferred leaders, which
    is what the plan decides.
    """

    broker: BrokerId
    size_bytes_before: int
    size_bytes_after: int
    replicas_before: int
    replicas_after: int
    leaders_before: int
    leaders_after: int
    bytes_in: int  # bytes the plan copies to it
    bytes_out: int  # bytes the plan copies from it, as leader
    log_dir_bytes: int = 0  # bytes the plan copies between its log dirs

    @property
    def change_bytes(self) -> int:
        """How much the plan has to do with it, to order brokers by."""
        return self.bytes_in + self.bytes_out + abs(self.size_bytes_after - self.size_bytes_before)


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """What an approver reads; ``summary.json``. Bytes and seconds.

    :param lower_bound_bytes: no plan that reaches the same state moves fewer bytes than this.
    :param predicted_s: about the least time: that of the busiest broker's copies at
        ``rate_bytes_per_s``, of places for partitions in flight, or of brokers that make small
        moves one after the other, whichever is longest; and a last poll. None where the rate is
        not known yet. The dry run predicts a range.
    :param asked_bound_bytes: no plan that does all that was asked moves fewer bytes; None where no
        budget cut this one off.
    :param ratio_to_bound: bytes copied over the lower bound, within brokers, too; of a plan that a
        budget cut off, over the bound of what was asked, which may be below 1; None where the
        bound is 0 and something moves.
    :param makespan_bound_s: no execution at that rate is faster: some broker has to receive, or
        as a leader send, that much.
    :param rack_violations_before, rack_violations_after: partitions that are not spread over the
        racks as evenly as these allow; None = not known, for no planner has made the plan.
    :param bytes_across_racks: bytes copied between branches of the rack tree's top level; None =
        not known, for no planner has made the plan.
    :param planned_by: which loads the plan was made by, and why not by others; a sentence.
    :param resources: before, after and band of each broker; prices: what each target costs.
    :param elections: partitions of which nothing but the leader changes.
    :param curve: what smaller budgets reach, from no byte to all that the plan copies; empty where
        the plan is not made to be looked at, or balances nothing.
    :param links: bytes from rack to rack, largest first.
    :param min_free_disk_fraction: part of each log dir that was to stay free.
    :param log_dir_moves: replicas that stay on their broker and move between its log dirs;
        ``log_dir_bytes`` copies them, and no way to balance the log dirs as well copies less than
        ``log_dir_bound_bytes``. None of this crosses the network, or counts in ``bytes_to_move``.
    :param ledger_id: of the ledger that it is made to be recorded in; "" = it is planned by hand.
    :param files: name of each of Kafka's files → SHA-256 of the bytes that the gate checks.
    :param topics: how evenly topics are spread; None where the plan does not go by that.
    :param weakened: partitions that end in fewer racks or with fewer replicas than they had.
    :param lower_bound_moves: no plan of a rebalance or an expansion that reaches the same bands
        moves fewer replicas; None for other actions, and where a budget has cut the plan.
        ``moves_over_bound``: replicas moved over that; None where the bound is 0.
    :param search_cut: whether the search ended because its budget of work was spent; a thorough
        one has a larger budget.
    :param min_leaders: leaders that brokers lack of named topics; None where none were named.
    """

    plan_id: str
    plan_hash: str
    cluster_id: str
    action: str
    snapshot: str
    partitions: int
    replica_moves: int
    leader_changes: int
    bytes_to_move: int
    lower_bound_bytes: int
    rate_bytes_per_s: int | None
    predicted_s: float | None
    rack_violations_before: int | None
    rack_violations_after: int | None
    brokers: tuple[BrokerLoad, ...]
    infeasible: tuple[Infeasible, ...] = ()
    ratio_to_bound: float | None = None
    makespan_bound_s: float | None = None
    bytes_across_racks: int | None = None
    planned_by: str = ""
    resources: tuple[ResourceBalance, ...] = ()
    prices: tuple[TargetPrice, ...] = ()
    links: tuple[Link, ...] = ()
    min_free_disk_fraction: float = 0.0
    log_dir_moves: int = 0
    log_dir_bytes: int = 0
    log_dir_bound_bytes: int = 0
    ledger_id: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    topics: TopicBalance | None = None
    asked_bound_bytes: int | None = None
    curve: tuple[BudgetPoint, ...] = ()
    min_leaders: LeaderMinimums | None = None
    elections: int = 0
    weakened: tuple[Weakened, ...] = ()
    search_cut: bool = False
    lower_bound_moves: int | None = None
    moves_over_bound: float | None = None

    @property
    def bytes_to_copy(self) -> int:
        """Bytes that are written anew: over the network or between log dirs."""
        return self.bytes_to_move + self.log_dir_bytes

    @property
    def cut_by_budget(self) -> bool:
        """Whether the budget leaves something of what was asked."""
        return self.asked_bound_bytes is not None


def summary_to_json(summary: PlanSummary) -> dict[str, Any]:
    """``summary.json`` as plain JSON types; field names are those of :class:`PlanSummary`."""
    plain: dict[str, Any] = json.loads(json.dumps(asdict(summary)))
    return plain


def summary_from_json(content: Mapping[str, Any]) -> PlanSummary:
    """The inverse of :func:`summary_to_json`."""
    values = dict(content)
    values["infeasible"] = tuple(map(infeasible_from_json, values.get("infeasible", ())))
    kinds = {
        "brokers": BrokerLoad,
        "prices": TargetPrice,
        "links": Link,
        "curve": BudgetPoint,
        "weakened": Weakened,
    }
    for name, kind in kinds.items():
        values[name] = tuple(kind(**item) for item in values.get(name, ()))
    values["resources"] = tuple(map(balance_from_json, values.get("resources", ())))
    topics = values.get("topics")
    values["topics"] = None if topics is None else TopicBalance(**topics)
    least = values.get("min_leaders")
    values["min_leaders"] = None if least is None else LeaderMinimums(**least)
    if values["rack_violations_before"] is None:  # older adopted plans have 0 for what is not known
        values["bytes_across_racks"] = None
    return PlanSummary(**values)
