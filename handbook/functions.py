"""The page of the functions that join the parts: their signatures and docstrings, by module."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from handbook.markdown import table
from handbook.sources import inline, signature

JOINTS: Mapping[str, str] = {
    "cluster.connection.settings": "Connection.from_settings",
    "cluster.connection.check": "check_connection",
    "cluster.gateway": "ClusterGateway",
    "cluster.interface.rights": "missing_rights rights_to_start hidden_topics",
    "cluster.snapshot.take": "take_snapshot",
    "warehouse": "Warehouse.write_snapshot Warehouse.latest_snapshot "
    "Warehouse.plan Warehouse.rollups PlanDirectory.save PlanDirectory.load "
    "PlanDirectory.write_json PlanDirectory.read_json read_snapshot",
    "load_history.daily_rollups": "pending_days roll_up window",
    "load_history.known_rates": "LoadHistory.read LoadHistory.with_rates",
    "load_history.forecast": "load_report",
    "domain.clock": "utc_now monotonic_s sleep new_id replaced_by",
    "domain.broker_rates": "BrokerRates.at_most BrokerRates.above",
    "field_descriptions": "describe_fields",
    "settings": "Settings.load settings_described",
    "domain.request.parse_request": "parse_request",
    "domain.request.presets": "fill_in",
    "domain.request.targets": "with_targets",
    "domain.request.cluster_values": "ClusterValues.of changes",
    "domain.request.partition_counts": "parse_partition_counts",
    "domain.run.control_parameters": "parse_control",
    "domain.run.causes.cause": "Cause most_specific",
    "domain.plan.kafka_json": "reassignment_json rollback_json",
    "domain.reassignment_file": "parse_reassignment",
    "clusters.clusters_file": "clusters_of ClustersFile.through",
    "clusters.binding": "misled_through",
    "clusters.window_settings": "entry_of_settings",
    "clusters.overlaps": "overlap_notes",
    "clusters.due": "why_not_due",
    "clusters.filled_requests": "request_by",
    "planning.planner": "make_plan",
    "planning.limits.current_limits": "broken_by_what_is_left",
    "planning.placement.add_partitions": "place",
    "planning.explain.explainer": "Explainer.partition Explainer.broker",
    "quality.gates": "check_snapshot check_snapshots check_evidence check_evidences",
    "quality.history": "check_history",
    "quality.in_process.snapshot_rows": "refused_snapshot",
    "quality.in_process.rules_on_rows": "refused_plan",
    "ledger.store": "Ledger.open Ledger.planned_moves Ledger.acquire_lease Ledger.under "
    "Ledger.request_run Ledger.requested_run Ledger.snapshot_taken_by Ledger.ask "
    "Ledger.question_of Ledger.approve Ledger.record_answer Ledger.add_audit "
    "Ledger.raise_alerts Ledger.record_sent",
    "execution.access.own_cluster": "OwnCluster.of_plan",
    "execution.access.connection_policy": "ConnectionPolicy.parse ConnectionPolicy.request_within "
    "ConnectionPolicy.require",
    "execution.access.cluster_policy": "strictest",
    "execution.access.lease": "hold",
    "execution.foreign.read_flights": "list_reassignments describe_reassignments",
    "execution.foreign.cancel_foreign": "cancel_foreign",
    "execution.foreign.clean_throttles": "clean_throttles",
    "execution.foreign.adopt": "adopted_plan adopt",
    "execution.dry_run.dry_run": "dry_run",
    "execution.throttle.set_up": "set_up_throttle clear_throttle",
    "execution.throttle.coverage": "look_at_throttles",
    "execution.throttle.ensure": "ensure",
    "execution.throttle.still_needed": "needs",
    "execution.throttle.cordon": "cordon",
    "execution.throttle.foreign": "foreign_throttles",
    "execution.throttle.ownership.leaving": "leave_step",
    "execution.throttle.ownership.lost": "look_for_lost",
    "execution.governor.control_loop": "govern first_rate",
    "execution.governor.rate_lines": "of_one of_others together",
    "execution.governor.measured_rate": "measure_delivered inflow_bytes_per_s",
    "execution.observation.observe": "observe",
    "execution.observation.foreign_reassignments": "in_flight follow fates",
    "execution.poll": "poll",
    "execution.decide": "decide",
    "execution.admission.backlog": "Backlog.follow",
    "execution.advance": "advance",
    "execution.rolling": "steps",
    "execution.control.controller": "Controller.control",
    "execution.control.resume": "check_continuable not_started",
    "execution.control.asked_pace": "refuse_above_approval refuse_more_moves within_policy",
    "execution.control.cancel": "abort",
    "execution.control.owed_log_dir_copies": "stop_owed_copies",
    "execution.completion.drained": "wait_until_drained",
    "execution.completion.verify": "verify",
    "execution.progress.flow_samples": "flow_sample",
    "execution.progress.progress": "replica_statuses status_table",
    "execution.progress.eta": "foretell eta_errors",
    "execution.create_partitions": "check create",
    "execution.export": "export",
    "execution.direct.direct_throttle": "set_direct_throttle clear_direct_throttle",
    "execution.direct.wanted_copies": (
        "validate_targets refuse_other_counts wanted_copies copy_limits"
    ),
    "watching.judging.judge": "judge",
    "watching.domains_away": "domains_away",
    "watching.open_and_close": "follow",
    "watching.respond": "respond",
    "watching.last_attempt": "LastAttempt.again_at LastAttempt.holds",
    "account.evidence": "read_evidence EvidenceFollower",
    "account.account": "account_of",
    "account.attempts": "attempt_of barred_by controls_of",
    "account.clusters.cluster_account": "account_of_cluster",
    "account.run_account": "account_of_run",
    "alerts.plan_alerts": "alerts_of",
    "alerts.due_alerts": "at_poll owed_alerts foreign_leftovers disks_full",
    "alerts.channels": "read_channels",
    "alerts.several": "about_all",
    "page.plan_view": "PlanFollower.view",
    "page.fleet": "members",
    "page.plan_json": "plan_json line_json moves_json",
    "page.controls": "offer",
    "metrics.readings": "poll_readings step_readings cluster_readings",
    "reporting.collect": "write_plan_report report_data",
}
"""Module below ``rehome`` → names that join it to other rooms. What is here is on the page, as the
code has it; a name that is gone ends the making of the page."""


def functions_page() -> str:
    """Markdown: a table for each room."""
    parts = [
        "# Functions that join the rooms",
        "Of each module the functions that "
        "[other rooms](../architecture.md#the-rooms) call first, with what their "
        "docstrings say in one sentence. The code has the rest.",
    ]
    for room in dict.fromkeys(module.split(".")[0] for module in JOINTS):
        parts.append(f"## {room}")
        rows = [row for module in JOINTS if module.split(".")[0] == room for row in _rows(module)]
        parts.append(table(("module", "function", "meaning"), rows))
    return "\n\n".join(parts) + "\n"


def _rows(module: str) -> Iterator[tuple[str, str, str]]:
    code = importlib.import_module(f"rehome.{module}")
    for number, name in enumerate(JOINTS[module].split()):
        yield "" if number else f"`{module}`", *_described(code, name)


def _described(code: Any, name: str) -> tuple[str, str]:
    found = code
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    if isinstance(found, property):
        return f"`{name}`", _sentence(found)
    answer = getattr(found, "__annotations__", {}).get("return", "None")
    answers = "" if inspect.isclass(found) or answer == "None" else f" → `{answer}`"
    return f"`{name}{signature(found)}`{answers}", _sentence(found)


def _sentence(subject: Any) -> str:
    """The first sentence of a docstring."""
    first = inline((inspect.getdoc(subject) or "").split("\n\n")[0])
    return re.split(r"(?<=[.])\s(?=[A-Z])", first, maxsplit=1)[0]
