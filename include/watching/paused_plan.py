"""What a paused plan waits for: its next window, a run that has begun, or a person. Pure."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from include.domain.run.findings import SETTINGS_CHECK, Severity
from include.watching.kinds import WatchPolicy
from include.watching.respond import HEAD_START, Heal, PausedHeal, healing_goes_on_at
from include.watching.rules import WatchRules


class DagState(enum.Enum):
    """Whether a DAG runs by its schedule."""

    RUNS = "runs"
    PAUSED = "paused"
    NOT_KNOWN = "not_known"  # tasks cannot ask Airflow
    NONE = "none"  # there is no such DAG for the cluster


class ResumedBy(enum.Enum):
    """What goes on with a paused plan by itself."""

    WATCHING = "watching"  # watch_clusters, with a snapshot
    WINDOW_DAG = "window_dag"  # rebalance_in_window, when a window opens
    RUN = "run"  # one that was started since


class Why(enum.Enum):
    """Why a paused plan waits for a person."""

    PAUSED_BY_PERSON = "paused_by_person"
    NO_WINDOW = "no_window"  # no coming window is long enough
    NO_WINDOW_DAG = "no_window_dag"  # the cluster has no rebalance_in_window
    WINDOW_DAG_PAUSED = "window_dag_paused"  # in Airflow
    WATCHING_PAUSED = "watching_paused"  # in Airflow, or the DAG that takes the snapshots
    DOMAIN_AWAY = "domain_away"  # a rack or data centre: no heal starts
    TOO_MANY_DEAD = "too_many_dead"  # brokers: the watch rules let no heal start
    NOT_HEALED = "not_healed"  # the watch rules say heal no longer
    NOT_ALLOWED = "not_allowed"  # the connection's policy
    HEALING_STOPPED = "healing_stopped"  # the rules let no heal start at all
    NOT_KNOWN = "not_known"  # the settings that decide it cannot be read


@dataclass(frozen=True, slots=True)
class GoesOn:
    """It goes on by itself.

    :param opens_at: opening of the window in which it does; None = it needs none. ``is_open``: it
        has opened already.
    :param at: when it does, at the earliest.
    :param stopped_until: until when the circuit breaker lets no heal start; None = it does now.
    :param sure: False = only if the DAG is unpaused, which is not known here.
    :param run_id: of the run, where one was started.
    """

    by: ResumedBy
    at: datetime
    opens_at: datetime | None = None
    is_open: bool = False
    stopped_until: datetime | None = None
    sure: bool = True
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class NeedsPerson:
    """It stays paused until a person resumes it, cancels it, or removes the reason.

    :param detail: what is wrong, where the reason does not say it all.
    """

    why: Why
    detail: str = ""


Outlook = GoesOn | NeedsPerson


@dataclass(frozen=True, slots=True)
class RefusedResume:
    """The last run that was to go on with the plan changed nothing: its dry run has found errors.

    :param error: the first one, and ``others`` how many more; ``remedy``: of the first.
    :param breaks_limits: caps or broker sets of now are among them: no run can go on with it.
    """

    error: str
    remedy: str
    others: int = 0
    breaks_limits: bool = False


@dataclass(frozen=True, slots=True)
class WindowOpening:
    """One opening of a maintenance window; aware UTC times."""

    begins: datetime
    ends: datetime


@dataclass(frozen=True, slots=True)
class PausedFacts:
    """Facts on which it depends.

    :param heal: the plan, if it heals a finding; None = watching leaves it alone.
    :param windows: that are open, or open next, the first first; None = the cluster has none.
    :param window_dag: `rebalance_in_window` of the cluster.
    :param watched: whether `watch_clusters`, and what takes snapshots for it, are unpaused.
    :param run_id: of the run that watching has started since to go on with it; "" = none.
    :param heals: of the cluster.
    :param refused: whether the connection's policy refuses the plan's action at a time.
    :param dead_fraction: of the cluster's brokers, those that are not alive.
    :param domains_away: racks and data centres of which no broker is alive.
    """

    paused_at: datetime
    by_person: bool
    heal: PausedHeal | None
    windows: Sequence[WindowOpening] | None
    window_dag: DagState
    watched: bool
    run_id: str
    heals: Sequence[Heal]
    refused: Callable[[datetime], bool]
    dead_fraction: float = 0.0
    domains_away: Sequence[str] = ()


def outlook(facts: PausedFacts, rules: WatchRules, now: datetime) -> Outlook:
    """What a paused plan waits for. Of two that would go on with it, the first one counts."""
    if facts.by_person:
        return NeedsPerson(Why.PAUSED_BY_PERSON)
    if facts.run_id:
        return GoesOn(ResumedBy.RUN, now, run_id=facts.run_id)
    found = [_in_window(facts, now)]
    if facts.heal is not None:
        found.insert(0, _by_watching(facts.heal, facts, rules, now))
    going_on = [each for each in found if isinstance(each, GoesOn)]
    # What is not sure comes into question only where nothing else goes on with it.
    return min(going_on, key=lambda each: (not each.sure, each.at), default=found[0])


def _in_window(facts: PausedFacts, now: datetime) -> Outlook:
    """By rebalance_in_window. In a window that has been open for some time, its run has been."""
    match facts.window_dag:
        case DagState.NONE:
            return NeedsPerson(Why.NO_WINDOW_DAG)
        case DagState.PAUSED:
            return NeedsPerson(Why.WINDOW_DAG_PAUSED)
    fresh = (each for each in _usable(facts) if each.begins > now - HEAD_START)
    window = next(fresh, None)
    if window is None:
        return NeedsPerson(Why.NO_WINDOW)
    sure = facts.window_dag is DagState.RUNS
    at = max(now, window.begins)
    return GoesOn(ResumedBy.WINDOW_DAG, at, window.begins, window.begins <= now, sure=sure)


def _by_watching(heal: PausedHeal, facts: PausedFacts, rules: WatchRules, now: datetime) -> Outlook:
    if not facts.watched:
        return NeedsPerson(Why.WATCHING_PAUSED)
    if rules.policy_of(heal.kind, heal.subject) is not WatchPolicy.HEAL:
        return NeedsPerson(Why.NOT_HEALED)
    if facts.domains_away:
        return NeedsPerson(Why.DOMAIN_AWAY, ", ".join(facts.domains_away))
    if facts.dead_fraction > rules.dead_fraction_to_stop:
        return NeedsPerson(Why.TOO_MANY_DEAD)
    free = healing_goes_on_at(facts.heals, rules, now)
    if free is None:
        return NeedsPerson(Why.HEALING_STOPPED)
    stopped_until = free if free > now else None
    if heal.again_at is not None:
        free = max(free, heal.again_at)
    at, opens_at = free, None
    if facts.windows is not None:
        starts = ((max(free, each.begins + HEAD_START), each) for each in _usable(facts))
        at, window = next(((at, w) for at, w in starts if at < w.ends), (free, None))
        if window is None:
            return NeedsPerson(Why.NO_WINDOW)
        opens_at = window.begins
    if facts.refused(at):
        return NeedsPerson(Why.NOT_ALLOWED, heal.action)
    is_open = opens_at is not None and opens_at <= now
    return GoesOn(ResumedBy.WATCHING, at, opens_at, is_open, stopped_until)


def _usable(facts: PausedFacts) -> Iterator[WindowOpening]:
    """Windows but for the one that did not suffice."""
    return (each for each in facts.windows or () if each.begins > facts.paused_at)


def refused_by(dry_run: Mapping[str, Any] | None) -> RefusedResume | None:
    """Why the last run that was to go on with a paused plan did not: it has begun, so that its
    first dry run has found no error.

    :param dry_run: ``dry_run.json`` of the plan.
    """
    findings = (dry_run or {}).get("findings", ())
    # What no run can go on with comes first.
    errors = sorted(
        (item for item in findings if item["severity"] == Severity.ERROR),
        key=lambda item: item["check"] != SETTINGS_CHECK,
    )
    if not errors:
        return None
    first = errors[0]
    return RefusedResume(
        f"{first['subject']}: {first['message']}",
        first["remedy"],
        len(errors) - 1,
        first["check"] == SETTINGS_CHECK,
    )
