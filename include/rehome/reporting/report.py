"""Renders a plan's report: one HTML file, no script, nothing from any other host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rehome.account.known import Known
from rehome.account.words.figure_words import (
    bytes_sentence,
    incomparable_text,
    outcome,
    time_taken,
    total_text,
)
from rehome.account.words.finding_words import names_text, what_text
from rehome.account.words.standing_words import status_of
from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.figures import ResourceBalance
from rehome.domain.plan.infeasible_lines import infeasible_lines, limit_lines
from rehome.domain.plan.move import Move
from rehome.domain.plan.summary import PlanSummary
from rehome.domain.request.param_types import MIN_LEADERS, TOPIC_SPREAD
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import RESOURCE_NAMES, Resource
from rehome.domain.run.states import BY_URGENCY, MoveState, PlanState
from rehome.domain.text import second_text
from rehome.execution.completion.words.end_words import demotion_text
from rehome.execution.progress.eta import eta_errors
from rehome.ledger.base.records import SetBy, ThrottleEntry, ThrottleState
from rehome.reporting import number_text
from rehome.reporting.charts import rate_chart as rates
from rehome.reporting.charts.plan_charts import largest_moves, link_picture, load_pictures
from rehome.reporting.charts.progress_charts import broker_picture, progress_curve
from rehome.reporting.charts.rate_chart import rate_picture
from rehome.reporting.checks import checks_of
from rehome.reporting.data import ReportData
from rehome.reporting.plan_files import PLAN_FILES
from rehome.reporting.plan_text import (
    asked_for,
    done_text,
    not_verified,
    unusual,
)

MOVES_SHOWN = 300
LINES_SHOWN = 200
"""Rows of every other table."""
_NOT_LISTED = ("report.html", "request.json", "settings.json", "load.json", "failure.json")
"""Files that are not among those that a report lists."""


def render(data: ReportData) -> str:
    """The report as HTML. Names from the cluster are escaped, whatever they hold."""
    return _environment().get_template("report.html.j2").render(**_view(data))


@cache
def _environment() -> Environment:
    """One for the process: it keeps the templates that it has compiled."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        bytes=number_text.bytes_text,
        duration=number_text.duration_text,
        rate=number_text.rate_text,
        time=number_text.time_text,
        brokers=number_text.brokers_list,
        demotion=demotion_text,
        leader_minimums=number_text.leader_minimums,
        signed_percent=number_text.signed_percent_text,
        not_reached=infeasible_lines,
        limits=limit_lines,
    )
    return environment


def _view(data: ReportData) -> dict[str, Any]:
    plan = data.plan
    return {
        "data": data,
        "plan": plan,
        "summary": plan.summary,
        "account": data.account,
        "proofs": data.account.files,
        "status": status_of(data.account),
        "facts": _facts(data),
        "what_happened": _what_happened(data),
        "unusual": unusual(data)[:LINES_SHOWN],
        "unusual_left_out": max(0, len(unusual(data)) - LINES_SHOWN),
        "picture": broker_picture(plan.summary.brokers, _bytes_balance(plan.summary)),
        "load_pictures": load_pictures(plan.summary),
        "links": link_picture(plan.summary.links),
        "largest": largest_moves(plan.moves),
        "bound": _bound_text(plan.summary),
        "resource_name": _target_name,
        "curve": progress_curve(data),
        "predicted": data.account.predicted_of_all,
        "comparison": _comparison(data),
        "bytes_sentence": _bytes_sentence(data),
        "not_comparable": incomparable_text(data.account),
        "eta_errors": eta_errors(data.samples) if data.account.state is PlanState.DONE else (),
        "moves": _move_rows(data),
        "moves_left_out": max(0, len(plan.moves) - MOVES_SHOWN),
        "starts": data.reassignments[-LINES_SHOWN:],
        "starts_left_out": max(0, len(data.reassignments) - LINES_SHOWN),
        "checks": checks_of(data),
        "names_text": names_text,
        "what_text": what_text,
        "why_text": why_text,
        "throttles": [_throttle_row(entry) for entry in data.throttles[:LINES_SHOWN]],
        "throttles_left_out": max(0, len(data.throttles) - LINES_SHOWN),
        "rate_picture": rate_picture(data),
        "rate_changes": list(enumerate(data.account.rates, start=1))[-LINES_SHOWN:],
        "rate_changes_left_out": max(0, len(data.account.rates) - LINES_SHOWN),
        "rate_reason": rates.change_text,
        "not_verified": not_verified(data),
        "problems": _problems(data),
        "events": data.events[-LINES_SHOWN:],
        "events_left_out": max(0, len(data.events) - LINES_SHOWN),
        "request": _request(data.request),
        "files": _files(data),
        "count": number_text.count_text,
    }


def _what_happened(data: ReportData) -> list[tuple[str, str]]:
    """The head of the report, before what is left and what to do."""
    parts = [
        ("Asked", asked_for(data)),
        ("Done", done_text(data)),
        ("Time", time_taken(data.account)),
    ]
    return [(what, text) for what, text in parts if text]


def _bytes_balance(summary: PlanSummary) -> ResourceBalance | None:
    return next((item for item in summary.resources if item.resource == Resource.BYTES), None)


def _bound_text(summary: PlanSummary) -> str:
    """How far the plan is from the least that any plan moves, or from all that was asked."""
    asked_bound = summary.asked_bound_bytes
    bound = summary.lower_bound_bytes if asked_bound is None else asked_bound
    least = f"at least {number_text.bytes_text(bound)} by any plan"
    if asked_bound is not None:
        least = f"{least} that does all that was asked, which the budget does not pay for"
    if summary.ratio_to_bound is not None and bound:
        least = f"{least}: {summary.ratio_to_bound:.4g} times that"
    if summary.lower_bound_moves:
        moves = number_text.count_text(summary.lower_bound_moves, "replica")
        least = f"{least}; at least {moves}: {summary.moves_over_bound:.4g} times that"
    if summary.search_cut:
        least = (
            f"{least}; the search ended with its budget of work, effort=thorough has a larger one"
        )
    return least


def _facts(data: ReportData) -> list[tuple[str, str]]:
    """Who, where and when, for the line below the head."""
    record = data.record
    facts = [("plan", data.plan.plan_id), ("cluster", data.plan.cluster_id)]
    facts.append(("asked for by", record.actor))
    if record.approved_by:
        facts.append(("approved by", record.approved_by))
    if record.started_at:
        facts.append(("started", second_text(record.started_at)))
    if record.ended_at:
        facts.append(("ended", second_text(record.ended_at)))
    return facts


@dataclass(frozen=True, slots=True)
class PredictionCheck:
    """A prediction and what came of it; percentages of the largest of all.

    :param predicted_percent: from the least to the most.
    :param outcome: how they compare; "" = nothing to say.
    """

    what: str
    predicted: str
    actual: str
    predicted_percent: tuple[float, float]
    actual_percent: float
    outcome: str = ""


def _comparison(data: ReportData) -> list[PredictionCheck]:
    """Predicted against actual, once the plan has started."""
    account = data.account
    if account.elapsed is None:
        return []
    compared, elapsed_s = [_bytes_compared(data)], account.elapsed.total.total_seconds()
    prediction = account.predicted_of_all
    if prediction is not None and account.incomparable is None:
        longest_s = max(prediction.most_s, elapsed_s) or 1
        between = 100 * prediction.least_s / longest_s, 100 * prediction.most_s / longest_s
        taken, percent = number_text.duration_text(elapsed_s), 100 * elapsed_s / longest_s
        parts = outcome(prediction, elapsed_s, ended=account.state.ended)
        compared.insert(0, PredictionCheck("Time", str(prediction), taken, between, percent, parts))
    return compared


def _bytes_sentence(data: ReportData) -> str:
    """What was copied; "" before the start."""
    return bytes_sentence(data.account.bytes) if data.started else ""


def _bytes_compared(data: ReportData) -> PredictionCheck:
    """What was to be copied, and what is in place of it, with what it consists of."""
    planned, account = data.plan.summary.bytes_to_copy, data.account
    size, what = number_text.bytes_text(planned), "Bytes in place"
    if not isinstance(account.bytes.copying, Known):
        return PredictionCheck(what, size, "not known", (0.0, 100.0), 0.0)
    moved = account.bytes.copying.value.in_place
    most = max(planned, moved) or 1
    bar, percent = (0.0, 100 * planned / most), 100 * moved / most
    return PredictionCheck(
        what, size, number_text.bytes_text(moved), bar, percent, total_text(account.bytes)
    )


@dataclass(frozen=True, slots=True)
class MoveRow:
    """One move as the table shows it."""

    move: Move
    state: MoveState
    detail: str
    problem: str
    took: str


def _move_rows(data: ReportData) -> list[MoveRow]:
    """What went wrong first, then the largest."""
    took = {r.partition: _took(r.started_at, r.ended_at) for r in data.reassignments}
    problems = _problems(data)
    rows = [
        MoveRow(
            move,
            _state(data, move),
            data.moves[move.partition].detail if move.partition in data.moves else "",
            problems.get(str(move.partition), ""),
            took.get(move.partition, ""),
        )
        for move in data.plan.moves
    ]
    rows.sort(
        key=lambda row: (
            not row.problem,
            BY_URGENCY.index(row.state),
            -row.move.size_bytes,
            row.move.partition,
        )
    )
    return rows[:MOVES_SHOWN]


def _took(start: Any, end: Any) -> str:
    return number_text.duration_text((end - start).total_seconds()) if end else ""


def _state(data: ReportData, move: Move) -> MoveState:
    record = data.moves.get(move.partition)
    return record.state if record else MoveState.PENDING


def _problems(data: ReportData) -> dict[str, str]:
    return dict((data.account.files.verification or {}).get("problems", {}))


@dataclass(frozen=True, slots=True)
class ThrottleRow:
    """A configuration key that the plan changed, as the table shows it.

    :param at: when its state was last recorded, in UTC.
    :param proof: what is known of its value on the cluster now.
    """

    where: str
    key: str
    ours: str
    before: str
    state: str
    at: str
    proof: str


_PROOFS = {
    ThrottleState.INTENDED: "written down; nothing of it has been asked of the cluster",
    ThrottleState.JOURNALLED: "written down before it was set; not read back yet",
    ThrottleState.APPLIED: "read back from the cluster: it is set",
    ThrottleState.CLEARED: "read back from the cluster: as it was found",
    ThrottleState.OWED: "not taken back yet",
    ThrottleState.KEPT: "read back from the cluster: it is to stay",
}


def _throttle_row(entry: ThrottleEntry) -> ThrottleRow:
    proof = _PROOFS[entry.state]
    if entry.set_by is SetBy.OTHERS:
        proof = "another client's value is set there: left alone"
    return ThrottleRow(
        str(entry.resource),
        entry.key,
        ",".join(entry.ours),
        "not set" if entry.prior_value is None else entry.prior_value or "empty",
        entry.state.value,
        number_text.time_text(entry.changed_at),
        f"{proof}; {entry.detail}" if entry.detail else proof,
    )


def _request(request: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was asked for; only parameters Rehome knows, so that nothing else ever shows."""
    names = {item.name for item in fields(ReassignmentRequest)} | {"throttle"}
    shown = []
    for name, value in request.items():
        if name not in names or value in (None, "", [], {}, False):
            continue
        if name == "reassignment":
            text = number_text.count_text(len(value.get("partitions", ())), "partition") + " listed"
        elif name == "throttle" and isinstance(value, int):
            text = number_text.rate_text(value) + " per broker"
        elif isinstance(value, list):
            text = ", ".join(str(item) for item in value)
        else:
            text = "yes" if value is True else str(value)
        shown.append((name.replace("_", " "), text))
    return shown


def _files(data: ReportData) -> list[tuple[str, str]]:
    read = data.account.files
    absent = {
        **dict.fromkeys(_NOT_LISTED, True),
        "gates.json": not read.gates,
        "dry_run.json": read.tried is None,
        "verification.json": read.verification is None,
        "leaders.json": read.leaders is None,
        "drained.json": read.drained is None,
        "demoted.json": read.demoted is None,
    }
    return [(name, what) for name, what in PLAN_FILES.items() if not absent.get(name, False)]


def _target_name(name: str) -> str:
    """A target as a table says it."""
    apart = {TOPIC_SPREAD: "topics spread over brokers", MIN_LEADERS: "a minimum of leaders"}
    return apart.get(name) or RESOURCE_NAMES[Resource(name)]
