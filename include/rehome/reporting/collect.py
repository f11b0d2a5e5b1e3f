"""Gathers what a report shows from the plan's files and the ledger."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rehome.account.evidence import files_read, read_evidence, read_samples
from rehome.account.words.standing_words import status_of
from rehome.account.words.step_words import waits_text
from rehome.domain.run.flows import complete_samples
from rehome.domain.run.paused.paused_plan import Outlook
from rehome.domain.run.progress import PACE_WINDOW
from rehome.ledger.store import Ledger
from rehome.reporting.data import ReportData
from rehome.reporting.plan_text import ended_note
from rehome.reporting.report import render
from rehome.warehouse import PlanDirectory


def write_plan_report(
    directory: PlanDirectory, ledger: Ledger, outlook: Outlook | None = None
) -> str:
    """Write ``report.html`` for a plan as it is now; returns its URI.

    :param outlook: what the plan waits for while it is paused.
    :raises RehomeError: the directory holds no plan, or the ledger does not have it.
    """
    data = report_data(ledger, directory, outlook)
    return directory.write_text("report.html", render(data))


def note_of_end(directory: PlanDirectory, ledger: Ledger, outlook: Outlook | None = None) -> str:
    """What has become of the plan in a directory, in a few sentences, for the note of its run.

    :param outlook: what the plan waits for while it is paused.
    :raises RehomeError: the directory holds no plan, or the ledger does not have it.
    """
    data = report_data(ledger, directory, outlook)
    status, waits = status_of(data.account), waits_text(data.account)
    return ended_note(data, status.label, status.next_step, waits.text if waits else "")


def report_data(
    ledger: Ledger,
    directory: PlanDirectory,
    outlook: Outlook | None = None,
) -> ReportData:
    """Everything known about the plan in a directory.

    :param outlook: what the plan waits for while it is paused.
    :raises RehomeError: the directory holds no plan, or the ledger does not have it.
    """
    plan = directory.load()
    plan_id = plan.plan_id
    read = partial(_read, directory)
    plan_evidence = read_evidence(ledger, plan_id)
    evidence = replace(
        plan_evidence,
        files=files_read(read, plan.summary, ended=True),
        outlook=outlook,
        # The last report is among the last steps of a run.
        run_over=plan_evidence.record.state.ended,
    )
    return ReportData(
        plan=plan,
        written_at=datetime.now(UTC),
        evidence=evidence,
        request=read("request.json") or {},
        moves=ledger.moves(plan_id),
        reassignments=tuple(ledger.reassignments(plan_id)),
        throttles=tuple(ledger.throttles(plan_id)),
        samples=read_samples(ledger, plan_id),
        events=tuple(ledger.events(plan_id)),
        delivered=_delivered_rates(ledger, plan_id),
    )


def _delivered_rates(ledger: Ledger, plan_id: str) -> tuple[tuple[datetime, float], ...]:
    """What the busiest broker delivered, where every broker has reported what it copied, and not
    over a time without polls: a mean over that says nothing.
    """
    flows = ledger.flows(plan_id)
    complete = set(complete_samples([sample for sample, _ in flows]))
    return tuple(
        (sample.at, busiest)
        for sample, busiest in flows
        if sample in complete and sample.at - sample.since <= PACE_WINDOW
    )


def _read(directory: PlanDirectory, name: str) -> Any:
    return directory.read_json(name) if directory.exists(name) else None
