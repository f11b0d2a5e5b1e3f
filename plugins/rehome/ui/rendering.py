"""Templates, and how they write numbers, times and states."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rehome.account.clusters.troubles import TroubleKind
from rehome.account.known import Known
from rehome.account.requests import RequestState
from rehome.account.run_account import Changed
from rehome.account.words import (
    attempt_words,
    figure_words,
    finding_words,
    hurt_words,
    step_words,
    trouble_words,
)
from rehome.domain.plan.move import MoveReason
from rehome.domain.run.causes.hurts import HurtKind
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.domain.text import clock_text, second_text, whole_percent
from rehome.links import URL_PREFIX
from rehome.page.controls import LABELS
from rehome.reporting import number_text
from rehome.reporting.titles import title_of
from rehome.version import REHOME_VERSION

HERE = Path(__file__).parent
STATE_WORDS = {
    PlanState.PLANNED: "Planned",
    PlanState.APPROVED: "Approved",
    PlanState.RUNNING: "Running",
    PlanState.PAUSED: "Paused",
    PlanState.DONE: "Done",
    PlanState.CANCELLED: "Cancelled",
    PlanState.ROLLED_BACK: "Rolled back",
    PlanState.FAILED: "Failed",
}
MOVE_WORDS = {
    MoveState.PENDING: "waiting",
    MoveState.ADMITTED: "copying",
    MoveState.DONE: "done",
    MoveState.CANCELLED: "cancelled",
    MoveState.SUPERSEDED: "superseded",
    MoveState.FAILED: "failed",
    MoveState.GONE: "gone",
}

REASONS = {
    MoveReason.DRAIN: "a broker is drained",
    MoveReason.REPLACE: "a broker is replaced",
    MoveReason.OFFLINE: "a replica is offline",
    MoveReason.BALANCE: "balance",
    MoveReason.RACK: "rack spread",
    MoveReason.REPLICATION_FACTOR: "replication factor",
    MoveReason.REQUESTED: "asked for by name",
    MoveReason.LOG_DIR: "balance of log dirs",
    MoveReason.EVACUATE: "a log dir is emptied",
    MoveReason.LEADER: "preferred leader only",
    MoveReason.ELECTION: "election only",
    MoveReason.ROLLBACK: "rollback",
}


def render(name: str, **values: Any) -> str:
    """A template as HTML; whatever comes from a cluster or a person is escaped."""
    return _environment().get_template(name).render(**values)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["known"] = lambda fact: isinstance(fact, Known)
    environment.filters.update(
        bytes=bytes_html,
        rate=number_text.rate_text,
        duration=number_text.duration_text,
        time=time_html,
        brokers=number_text.brokers_list,
        count=number_text.count_text,
        percent=whole_percent,
        end_of=figure_words.end_of,
        elapsed=figure_words.elapsed_text,
        predicted=figure_words.predicted_text,
        hurt_text=hurt_words.hurt_text,
        trouble_text=trouble_words.trouble_text,
        troubles_in_short=trouble_words.troubles_in_short,
        step_here=step_words.step_here,
        found_sentence=finding_words.found_sentence,
        names_text=finding_words.names_text,
        what_text=finding_words.what_text,
        rate_of=figure_words.rate_of,
        rate_of_partition=figure_words.rate_of_partition,
        in_place=figure_words.in_place_text,
        total=figure_words.total_text,
        received=figure_words.received_text,
    )
    environment.globals.update(
        title_of=title_of,
        labels=LABELS,
        request_words=attempt_words.REQUEST_WORDS,
        hurt_controls=step_words.HURT_CONTROLS,
        state_words=STATE_WORDS,
        move_words=MOVE_WORDS,
        reasons=REASONS,
        airflow=airflow_root,
        version=REHOME_VERSION,
        Changed=Changed,
        Control=Control,
        why_unknown=figure_words.WHY_UNKNOWN,
        HurtKind=HurtKind,
        MoveState=MoveState,
        PlanState=PlanState,
        RequestState=RequestState,
        TroubleKind=TroubleKind,
    )
    return environment


def bytes_html(size_bytes: int | None) -> str:
    """A size in words, the exact one as a tooltip."""
    if size_bytes is None:
        return Markup('<span class="quiet">unknown</span>')
    # Numbers and units: there is nothing to escape, and a page has hundreds of them.
    return Markup(f'<span title="{size_bytes:,} bytes">{number_text.bytes_text(size_bytes)}</span>')


def time_html(at: datetime | None) -> str:
    """A time in UTC that the browser rewrites into the viewer's own zone."""
    if at is None:
        return ""
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        utc.isoformat(), second_text(utc), clock_text(utc)
    )


def airflow_root(root: str) -> str:
    """What every address of Airflow's own pages begins with."""
    return root.removesuffix(URL_PREFIX)
