"""An approval, and terms that differ from it in one thing each."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from rehome.domain.broker_rates import BrokerRates
from rehome.domain.request.request import Cordon, OnWindowEnd
from rehome.domain.run.approval.effects import Effects, FollowUp
from rehome.domain.run.approval_terms import Approval, Terms
from rehome.execution.control.approval import Lapse
from tests.ledger.small_plans import make_plan

NOW = datetime(2030, 1, 1, 2, tzinfo=UTC)
PLAN = make_plan("p1")
SETTINGS = {"caps.default.replicas": 4}
DRAIN = Effects(leaders=True, cordon=Cordon.UNDO, cordoned=(3,), follow_up=FollowUp(7))
EVIDENCE = {"summary.json": "a" * 64, "dry_run.json": "b" * 64}
TERMS = Terms(
    PLAN.plan_hash,
    5_000_000,
    NOW + timedelta(hours=2),
    settings=SETTINGS,
    effects=DRAIN,
    evidence=EVIDENCE,
    least_rate_bytes_per_s=2_000_000,
    rates_by_broker=BrokerRates({3: 2_000_000}),
)
GIVEN = Approval(TERMS, "ann", True, NOW, NOW + timedelta(hours=1), by_id="7", question_id=1)
CHANGES: list[tuple[dict[str, Any], Lapse, str]] = [
    ({"plan_hash": "0" * 64}, Lapse.HASH, "hash is 0000"),
    ({"rate_bytes_per_s": 5_000_001}, Lapse.RATE, "5000001 bytes per second, not 5000000"),
    ({"rate_bytes_per_s": 4_999_999}, Lapse.RATE, "4999999 bytes per second, not 5000000"),
    ({"window_end": None}, Lapse.WINDOW, "without a window"),
    ({"window_end": NOW + timedelta(hours=3)}, Lapse.WINDOW, "until 2030-01-01 05:00:00 UTC"),
    ({"on_window_end": OnWindowEnd.CANCEL}, Lapse.WINDOW, "in flight is cancelled"),
    ({"unthrottled": 4}, Lapse.UNTHROTTLED, "it would run without a throttle: 4 moves"),
    ({"unthrottled": 4}, Lapse.UNTHROTTLED, "approved was: at 5 MB/s ("),
    (
        {"least_rate_bytes_per_s": 4_000_000},
        Lapse.LEAST_RATE,
        "not lowered below 4 MB/s; approved was: where partitions suffer, the throttle is not "
        "lowered below 2 MB/s",
    ),
    ({"least_rate_bytes_per_s": 0}, Lapse.LEAST_RATE, "down to a tenth of it"),
    (
        {"rates_by_broker": BrokerRates({3: 1_000_000})},
        Lapse.RATES_BY_BROKER,
        "broker 3 sends 1 MB/s at most; approved was: broker 3 sends 2 MB/s at most",
    ),
    (
        {"rates_by_broker": BrokerRates()},
        Lapse.RATES_BY_BROKER,
        "no broker has a throttle of its own; approved was",
    ),
    ({"additional": True}, Lapse.ADDITIONAL, "also while other clients reassign partitions"),
    ({"settings": {"caps.default.replicas": 5}}, Lapse.SETTINGS, "replicas was 4, and is 5"),
    ({"settings": {}}, Lapse.SETTINGS, "caps.default.replicas was 4, and is not set"),
    (
        {"effects": replace(DRAIN, replication_factor=True)},
        Lapse.REPLICATION_FACTOR,
        "partitions get more or fewer replicas than they have; approved was: every partition keeps",
    ),
    (
        {"effects": replace(DRAIN, leaders=False)},
        Lapse.LEADERS,
        "no leaders are elected in the end; approved was: preferred leaders are elected",
    ),
    ({"effects": replace(DRAIN, cordon=Cordon.KEEP)}, Lapse.CORDON, "**for good**"),
    ({"effects": replace(DRAIN, cordoned=(3, 4))}, Lapse.CORDON, "log dirs of brokers 3, 4"),
    ({"effects": replace(DRAIN, follow_up=None)}, Lapse.FOLLOW_UP, "within 7 B for both"),
    (
        {"evidence": EVIDENCE | {"summary.json": "c" * 64}},
        Lapse.EVIDENCE,
        "what the approver has read is not what is there now: summary.json",
    ),
]
"""What differs, as what an approval lapses by it, and words that say so."""
