"""Findings in words, for logs, alerts and the page. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rehome.domain.run.watched.finding import FindingRecord
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.domain.text import bytes_text, count_text, duration_text, first_names, minute_text
from rehome.watching.respond import NotNow


def title_of(kind: FindingKind) -> str:
    """The title of a kind."""
    return kind.value.replace("_", " ").capitalize().replace("isr", "ISR")


def text_of(finding: FindingRecord) -> str:
    """The finding in one sentence, by the last snapshot that showed it."""
    return _TEXTS[finding.kind](finding.subject, finding.facts)


def wait_text(wait: NotNow) -> str:
    """Why nothing is started for a finding."""
    return _WAITS[wait]


def table_of(findings: Sequence[FindingRecord]) -> list[str]:
    """A line for each finding: since when, kind, and what it is."""
    return [
        f"{minute_text(each.opened_at)}  {each.kind:<20}  {text_of(each)}"
        for each in findings
        if each.opened_at is not None
    ]


def _dead(subject: str, facts: Mapping[str, Any]) -> str:
    holds = count_text(facts["replicas"], "replica")
    text = f"{subject.capitalize()} is not alive and holds {holds}."
    away = facts.get("domains_away")
    return f"{text} Away as a whole: {', '.join(away)}. Nothing is healed." if away else text


def _flapping(subject: str, facts: Mapping[str, Any]) -> str:
    return (
        f"{subject.capitalize()} was away {facts['times']} times since {facts['since']}: it comes "
        "back, and goes away again."
    )


def _log_dir(subject: str, facts: Mapping[str, Any]) -> str:
    state = "is offline" if facts.get("offline") else "reports an error"
    why = f": {facts['error']}" if facts.get("error") else ""
    return f"The log dir of {subject} {state}{why}."


def _partitions(what: str) -> Callable[[str, Mapping[str, Any]], str]:
    def text(_: str, facts: Mapping[str, Any]) -> str:
        names = first_names(facts["partitions"], count=facts["count"])
        return f"{count_text(facts['count'], 'partition')} {what}: {names}."

    return text


def _connection(subject: str, facts: Mapping[str, Any]) -> str:
    if len(facts["entries"]) > 1:
        return f"Entries {', '.join(facts['entries'])} of the clusters file are for this cluster."
    entry = f"entry {facts['entry']} of the clusters file, with " if facts["entry"] else ""
    bound, leads = facts["bound_id"], facts["leads_to"]
    return f"Bound to cluster {bound}, but leads to cluster {leads}: {entry}{subject}."


def _clock(_: str, facts: Mapping[str, Any]) -> str:
    return (
        f"A snapshot that was there at {facts['judged_at']} says that it was taken at "
        f"{facts['taken_at']}, {duration_text(facts['ahead_s'])} later. One of the two clocks is "
        "wrong, and the snapshot is not judged."
    )


def _skew(_: str, facts: Mapping[str, Any]) -> str:
    count = count_text(facts["count"], "partition")
    return f"{count}, {facts['part']:.0%} of all, led by another broker than the preferred one."


def _disk(subject: str, facts: Mapping[str, Any]) -> str:
    growth = bytes_text(facts["growth_bytes_per_s"])
    return f"The disks of {subject} are full in {facts['days']:.1f} days at {growth}/s."


def _factor(subject: str, facts: Mapping[str, Any]) -> str:
    count = count_text(facts["count"], "topic")
    return (
        f"{count} of {subject} without replication factor {facts['replication_factor']}: "
        f"{first_names(facts['topics'], count=facts['count'])}."
    )


def _slow(subject: str, facts: Mapping[str, Any]) -> str:
    return (
        f"{subject.capitalize()}: {facts['part']:.0%} of its {facts['followers']:,} followers lag; "
        f"{facts['others']:.0%} elsewhere."
    )


def _imbalance(subject: str, facts: Mapping[str, Any]) -> str:
    worst = [f"{broker} ({by:+.0%})" for broker, by in facts["deviation"].items()]
    count = count_text(facts["count"], "broker")
    return f"{count} off the fair share of {subject}: {first_names(worst, count=facts['count'])}."


def _empty(subject: str, _: Mapping[str, Any]) -> str:
    return f"{subject.capitalize()} is alive and holds no replica."


def _throttles(_: str, facts: Mapping[str, Any]) -> str:
    count = count_text(facts["count"], "throttle setting")
    names = first_names(facts["throttles"], count=facts["count"])
    return f"{count} of other clients while nothing is reassigned: {names}."


def _removed_text(subject: str, facts: Mapping[str, Any]) -> str:
    what = subject if subject.startswith("setting ") else f"watch rule {subject}"
    return f"The {what} is ignored. In its place: {facts['successor']}."


_TEXTS: Mapping[FindingKind, Callable[[str, Mapping[str, Any]], str]] = {
    FindingKind.DEAD_BROKER: _dead,
    FindingKind.FLAPPING_BROKER: _flapping,
    FindingKind.OFFLINE_LOG_DIR: _log_dir,
    FindingKind.UNDER_MIN_ISR: _partitions("below min.insync.replicas"),
    FindingKind.UNDER_REPLICATED: _partitions("with replicas out of sync"),
    FindingKind.WRONG_CONNECTION: _connection,
    FindingKind.WRONG_CLOCK: _clock,
    FindingKind.DISK_FULL_SOON: _disk,
    FindingKind.RACK_VIOLATION: _partitions("not spread over racks as they could be"),
    FindingKind.REPLICATION_FACTOR: _factor,
    FindingKind.SLOW_BROKER: _slow,
    FindingKind.SLOW_LOG_DIR: _slow,
    FindingKind.IMBALANCE: _imbalance,
    FindingKind.LEADER_SKEW: _skew,
    FindingKind.EMPTY_BROKER: _empty,
    FindingKind.LEFTOVER_THROTTLE: _throttles,
    FindingKind.FOREIGN_REASSIGNMENT: _partitions("being reassigned by another client"),
    FindingKind.REMOVED_RULE: _removed_text,
}

_WAITS = {
    NotNow.PLAN_ACTIVE: "another plan is active on the cluster, or is being made",
    NotNow.GATE_REFUSES: "the snapshot is incomplete, or too old to plan on",
    NotNow.RETURNED: "the newest snapshot does not show it",
    NotNow.BROKER_AWAY: "a broker is away, and may be restarting",
    NotNow.DOMAIN_AWAY: "every broker of a rack or data centre, or more than 0.4 of all, is away: "
    "such an outage is not healed by itself, for it brings them back with their data",
    NotNow.HEALING_STOPPED: "healing has stopped: heals_a_day have begun within a day",
    NotNow.NOT_ALLOWED: "the connection's policy does not allow it now",
    NotNow.WINDOW_DAG_PAUSED: "rebalance_in_window carries heals out, and is paused in Airflow",
    NotNow.PROPOSED: "the proposal for a finding that is as severe, or more, waits for its answer",
    NotNow.ATTEMPTED: "see its last attempt",
}
