"""Gathers what a report shows from the plan's files and the ledger."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rehome.account.account import account_of
from rehome.account.evidence import PlanEvidence, read_evidence, read_samples
from rehome.account.findings import GATES
from rehome.domain.run.flows import answered
from rehome.domain.run.progress import PACE_WINDOW
from rehome.errors import PlanConflictError
from rehome.ledger.store import Ledger
from rehome.reporting.data import ReportData
from rehome.reporting.plan_text import ended_note
from rehome.reporting.report import render, status_facts
from rehome.reporting.status_summary import summarize_status
from rehome.warehouse import PlanDirectory
from rehome.watching.paused_plan import Outlook
from rehome.watching.paused_text import paused_text


def write_plan_report(
    directory: PlanDirectory, ledger: Ledger, outlook: Outlook | None = None
) -> str:
    """Write ``report.html`` for a plan as it is now; returns its URI.

    :param outlook: what the plan waits for while it is paused.
    :raises RehomeError: the directory holds no plan.
    """
    data = report_data(ledger, directory, outlook)
    return directory.write_text("report.html", render(data))


def note_of_end(directory: PlanDirectory, ledger: Ledger, outlook: Outlook | None = None) -> str:
    """What has become of the plan in a directory, in a few sentences, for the note of its run.

    :param outlook: what the plan waits for while it is paused.
    """
    data = report_data(ledger, directory, outlook)
    status = summarize_status(status_facts(data))
    waits = ""
    if outlook is not None:
        waits = paused_text(outlook, data.account.resume_refused if data.account else None).text
    return ended_note(data, status.label, status.next_step, waits)


def report_data(
    ledger: Ledger,
    directory: PlanDirectory,
    outlook: Outlook | None = None,
    *,
    now: datetime | None = None,
) -> ReportData:
    """Everything known about the plan in a directory.

    :param outlook: what the plan waits for while it is paused.
    :param now: the report's own time; the clock's when not given.
    :raises RehomeError: the directory holds no plan.
    """
    plan = directory.load()
    plan_id = plan.plan_id
    evidence = _evidence(ledger, plan_id)
    record = None if evidence is None else evidence.record
    written_at = now or datetime.now(UTC)
    tried, gates = _read(directory, "dry_run.json"), tuple(_read(directory, GATES) or ())
    return ReportData(
        plan=plan,
        written_at=written_at,
        request=_read(directory, "request.json") or {},
        record=record,
        account=None
        if evidence is None
        else account_of(replace(evidence, tried=tried, gates=gates), written_at),
        gates=gates,
        dry_run=tried,
        verification=_read(directory, "verification.json"),
        leaders=_read(directory, "leaders.json"),
        drained=_read(directory, "drained.json"),
        demoted=_read(directory, "demoted.json"),
        moves=ledger.moves(plan_id),
        reassignments=tuple(ledger.reassignments(plan_id)),
        throttles=tuple(ledger.throttles(plan_id)),
        samples=read_samples(ledger, plan_id),
        events=tuple(ledger.events(plan_id)),
        rates=tuple(ledger.rate_changes(plan_id)),
        delivered=_delivered(ledger, plan_id),
        outlook=outlook,
    )


def _delivered(ledger: Ledger, plan_id: str) -> tuple[tuple[datetime, float], ...]:
    """What the busiest broker delivered, where every broker has reported what it copied, and not
    over a time without polls: a mean over that says nothing.
    """
    found = ledger.flows(plan_id)
    complete = set(answered([sample for sample, _ in found]))
    return tuple(
        (sample.at, busiest)
        for sample, busiest in found
        if sample in complete and sample.at - sample.since <= PACE_WINDOW
    )


def _evidence(ledger: Ledger, plan_id: str) -> PlanEvidence | None:
    try:
        return read_evidence(ledger, plan_id)
    except PlanConflictError:
        return None  # planned by hand: the ledger has no record of it


def _read(directory: PlanDirectory, name: str) -> Any:
    return directory.read_json(name) if directory.exists(name) else None
