"""The hard rules on a plan that come from what was asked for.

The tables are those of :mod:`include.quality.plan.tables`.
"""

from __future__ import annotations

from math import isinf

from include.domain.request.request import Action, ReassignmentRequest, spread_tolerance
from include.domain.resources import Resource
from include.quality.engine.rules import DEFECT, Rule

EXPLICIT = (Action.REASSIGN, Action.ROLLBACK)
"""Actions whose targets the operator names."""

CHANGES_FACTOR = (Action.SET_REPLICATION_FACTOR, Action.ROLLBACK)
"""Actions after which a partition may have more or fewer replicas."""

_PARTITION = ("topic", "partition")
_BROKER = ("broker",)
_PLAN = ("plan_id",)


def request_rules(request: ReassignmentRequest, *, rack_levels: int) -> tuple[Rule, ...]:
    """The expectations on a plan that this request adds to those on any plan.

    :param rack_levels: depth of the cluster's rack tree; 0 = no racks.
    """
    return (
        *_scope_rules(request),
        *_factor_rules(request),
        *_rack_rules(request, rack_levels),
        *_limit_rules(request),
        *(() if request.action in EXPLICIT else (_LEADER_IS_ABLE,)),
    )


_LEADER_IS_ABLE = Rule(
    "a new preferred leader is in sync, or gets a copy",
    "moves",
    "leader_is_able",
    _PARTITION,
    DEFECT,
    ("current", "target", "in_sync_now"),
)


def _scope_rules(request: ReassignmentRequest) -> list[Rule]:
    rules = []
    if request.action not in EXPLICIT:
        rules.append(
            Rule(
                "only topics that the request is about are moved",
                "moves",
                "in_scope",
                _PARTITION,
                DEFECT,
            )
        )
    if request.action is Action.REASSIGN:
        rules.append(
            Rule(
                "a partition goes where the request's file says",
                "moves",
                "requested_replicas = target AND size(requested_elsewhere) = 0",
                _PARTITION,
                DEFECT,
                ("target", "requested_replicas", "requested_elsewhere"),
            )
        )
    if request.action is Action.DRAIN:
        rules += _drain_rules(request)
    if request.action is Action.FIX_OFFLINE_REPLICAS:
        rules += _OFFLINE_RULES
    if request.action in _LEAVES_NONE_OUT:
        rules.append(_UNPAID_LEFT_OUT if _has_budget(request) else _NONE_LEFT_OUT)
    rules += _movement_rules(request)
    return rules


_LEAVES_NONE_OUT = (
    Action.SET_REPLICATION_FACTOR,
    Action.REASSIGN,
    Action.REPAIR_RACKS,
    Action.FIX_OFFLINE_REPLICAS,
)
_OFFLINE_RULES = (
    Rule(
        "only offline replicas get new homes",
        "moves",
        "size(taken_online) = 0",
        _PARTITION,
        DEFECT,
        ("current", "target", "taken_online"),
    ),
    Rule(
        "no target keeps an offline replica",
        "moves",
        "size(offline_kept) = 0",
        _PARTITION,
        DEFECT,
        ("target", "offline_kept"),
    ),
)
_NONE_LEFT_OUT = Rule(
    "no partition that the request is about is left out",
    "plan",
    "left_out = 0",
    _PLAN,
    DEFECT,
    ("left_out", "left_out_first"),
)
_UNPAID_LEFT_OUT = Rule(
    "as many partitions are left out as the summary says that the budget leaves",
    "plan",
    "left_out = told_unpaid",
    _PLAN,
    DEFECT,
    ("left_out", "told_unpaid", "left_out_first"),
)
_EMPTIED = Rule(
    "a drained broker ends empty, but for partitions without a leader that the summary names",
    "brokers_after",
    "NOT is_drained OR scope_replicas_after = stuck_replicas",
    _BROKER,
    DEFECT,
    ("scope_replicas_after", "stuck_replicas"),
)
_EMPTIED_AS_FAR_AS_PAID = Rule(
    "a drained broker keeps what the summary says that the budget leaves on it, and what has no "
    "leader",
    "brokers_after",
    "NOT is_drained OR scope_replicas_after = told_unpaid + stuck_replicas",
    _BROKER,
    DEFECT,
    ("scope_replicas_after", "told_unpaid", "stuck_replicas"),
)


def _has_budget(request: ReassignmentRequest) -> bool:
    return request.budget_bytes is not None or request.budget_moves is not None


def _drain_rules(request: ReassignmentRequest) -> list[Rule]:
    return [
        Rule(
            "no target names a drained broker",
            "moves",
            "size(drained) = 0",
            _PARTITION,
            DEFECT,
            ("target", "drained"),
        ),
        Rule(
            "a drain moves only what lies on its brokers",
            "moves",
            "size(left) > 0",
            _PARTITION,
            DEFECT,
            ("current",),
        ),
        _EMPTIED_AS_FAR_AS_PAID if _has_budget(request) else _EMPTIED,
    ]


def _movement_rules(request: ReassignmentRequest) -> list[Rule]:
    """Who may give and take, and what may be copied at all."""
    rules = []
    if request.brokers and request.action in (Action.REBALANCE, Action.EXPAND):
        # A partition that is copied anyway is also made even, wherever that takes its replicas.
        rules.append(
            Rule(
                "only the brokers of the request give and take",
                "moves",
                "size(outside) = 0 OR repaired",
                _PARTITION,
                DEFECT,
                ("current", "target", "outside"),
            )
        )
    if request.action is Action.BALANCE_LEADERS:
        rules.append(
            Rule(
                "leaders are balanced by order alone",
                "moves",
                "array_sort(target) = array_sort(current) AND size(target_log_dirs) = 0",
                _PARTITION,
                DEFECT,
                ("current", "target"),
            )
        )
    if request.action is Action.MOVE_LOG_DIRS:
        rules.append(
            Rule(
                "a move between log dirs stays on its broker",
                "moves",
                "target = current",
                _PARTITION,
                DEFECT,
                ("current", "target"),
            )
        )
    return rules


def _factor_rules(request: ReassignmentRequest) -> list[Rule]:
    rules = [
        Rule(
            "the controller accepts another replication factor only where one is asked for",
            "plan",
            "allows_factor_change = (changes_factor AND "
            f"{'true' if request.action in CHANGES_FACTOR else 'false'})",
            _PLAN,
            DEFECT,
            ("allows_factor_change", "changes_factor"),
        )
    ]
    if request.action not in CHANGES_FACTOR:
        rules.append(
            Rule(
                "the replication factor stays",
                "moves",
                "size(target) = size(current)",
                _PARTITION,
                "Use the action set_replication_factor to change it.",
                ("current", "target"),
            )
        )
    if request.action is Action.SET_REPLICATION_FACTOR:
        rules.append(
            Rule(
                "the replication factor is the one asked for",
                "moves",
                f"size(target) = {int(request.replication_factor or 0)}",
                _PARTITION,
                DEFECT,
                ("target",),
            )
        )
    return rules


_IN_SYNC_FIRST = "(size(target) < size(current) AND in_sync_found < size(current))"
"""Of fewer replicas, those in sync are kept, whatever racks they are in."""


def rack_rule_name(level: int) -> str:
    """The name of the rule on one level of the racks; 1 is the topmost."""
    return f"replicas are spread over level {level} of the racks no worse than before"


def _rack_rules(request: ReassignmentRequest, levels: int) -> list[Rule]:
    """A level may only get worse where one above it gets better, or replicas in sync stay."""
    if request.action in EXPLICIT or request.ignore_racks:
        return []
    rules = []
    for level in range(1, levels + 1):
        better = [f"badly_after_{upper} < badly_before_{upper}" for upper in range(1, level)]
        rules.append(
            Rule(
                rack_rule_name(level),
                "moves",
                " OR ".join(
                    [*better, f"badly_after_{level} <= badly_before_{level}", _IN_SYNC_FIRST]
                ),
                _PARTITION,
                "Brokers that may take replicas and have room allow no even spread: free disk on "
                "better ones, uncordon log dirs, exclude fewer brokers, or plan without racks "
                "(ignore_racks).",
                ("current", "target", "better"),
            )
        )
    return rules


def _limit_rules(request: ReassignmentRequest) -> list[Rule]:
    """What the request allows at most."""
    rules = []
    if request.exclude_brokers:
        rules.append(
            Rule(
                "an excluded broker receives nothing",
                "moves",
                "size(excluded) = 0",
                _PARTITION,
                DEFECT,
                ("target", "excluded"),
            )
        )
    if request.budget_bytes is not None:
        rules.append(
            Rule(
                "no more bytes are copied than the budget allows",
                "plan",
                f"computed_bytes <= {int(request.budget_bytes)}",
                _PLAN,
                DEFECT,
                ("computed_bytes",),
            )
        )
    if request.budget_moves is not None:
        rules.append(
            Rule(
                "no more replicas are copied than the budget allows",
                "plan",
                f"computed_moves <= {int(request.budget_moves)}",
                _PLAN,
                DEFECT,
                ("computed_moves",),
            )
        )
    return rules + _share_rules(request)


def _share_rules(request: ReassignmentRequest) -> list[Rule]:
    """Where brokers may end after a rebalance or an expansion."""
    rules = []
    if request.action in (Action.REBALANCE, Action.EXPAND):
        rules.append(
            Rule(
                "a broker ends within the bands that the summary states, or is named",
                "brokers_after",
                "size(outside) = 0",
                _BROKER,
                DEFECT,
                ("outside",),
            )
        )
    if not isinf(spread_tolerance(request)):
        rules.append(
            Rule(
                "a topic ends spread over brokers within tolerance, or is named",
                "topics_after",
                "size(off_brokers) = 0 OR is_named",
                ("topic",),
                DEFECT,
                ("replicas", "off_brokers"),
            )
        )
    replicas = request.tolerances.get(Resource.REPLICAS)
    for name, after, tolerance in (
        ("bytes", "size_after", request.tolerance),
        ("replicas", "replicas_after", replicas),
    ):
        if request.action is Action.REBALANCE and tolerance is not None:
            off = f"{after} - share_{name}"
            rules.append(
                Rule(
                    f"a broker ends within tolerance of its share of {name}, "
                    "or the summary states why not",
                    "brokers_after",
                    f"share_{name} IS NULL OR {off if request.one_sided else f'abs({off})'} <= "
                    f"{float(tolerance)!r} * share_{name} + 2",
                    _BROKER,
                    DEFECT,
                    (after, f"share_{name}"),
                )
            )
    return rules
