"""What is wrong with a plan that has not ended well, or does not run as it should."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from include.domain.run.flows import FlowSample, RateChange, RateReason
from include.domain.run.ledger_view import MoveSums
from include.domain.run.progress import ProgressSample
from include.domain.run.states import MoveState, PlanState
from include.domain.text import brokers_text, bytes_text, count_text, duration_text
from include.ledger.base.records import PlanRecord


class AlertKind(enum.StrEnum):
    """What an alert is about; the worst first."""

    NO_SIGN_OF_LIFE = "no_sign_of_life"
    THROTTLES_OWED = "throttles_owed"
    FAILED_MOVES = "failed_moves"
    NOTHING_MOVES = "nothing_moves"
    STRAIN = "strain"
    SILENT_BROKERS = "silent_brokers"
    LATE = "late"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing that a person should know.

    :param text: what it is, and what to do where that is not Rehome's own doing.
    """

    kind: AlertKind
    text: str


@dataclass(frozen=True, slots=True)
class Signs:
    """What alerts are found in.

    :param orphaned: whether the plan runs, and its run gives no sign of life.
    :param owed: throttle settings of it that may still stand on the cluster, and that no run is
        about to take back.
    :param patience_s: how long nothing may move before that is an alert.
    :param flow: of the newest poll that could compare.
    """

    record: PlanRecord
    now: datetime
    sums: dict[MoveState, MoveSums]
    sample: ProgressSample | None
    rates: tuple[RateChange, ...]
    flow: FlowSample | None
    window_end: datetime | None
    ends_at: datetime | None
    orphaned: bool
    owed: int
    patience_s: float


def alerts_of(signs: Signs) -> tuple[Alert, ...]:
    """Every alert, the worst first."""
    found = sorted(_found(signs), key=lambda alert: list(AlertKind).index(alert.kind))
    return tuple(found)


def _found(signs: Signs) -> Iterator[Alert]:
    record = signs.record
    failed = signs.sums.get(MoveState.FAILED, MoveSums()).moves
    if failed:
        yield Alert(
            AlertKind.FAILED_MOVES,
            f"{count_text(failed, 'move')} failed: the table below names the cause of each.",
        )
    if signs.owed and not record.state.active:
        yield Alert(
            AlertKind.THROTTLES_OWED,
            f"{count_text(signs.owed, 'throttle setting')} of this plan may still stand on the "
            "cluster. sweep_throttles takes them back once their brokers answer.",
        )
    if record.state is PlanState.RUNNING:
        yield from _of_running(signs)


def _of_running(signs: Signs) -> Iterator[Alert]:
    record = signs.record
    if signs.orphaned:
        yield Alert(
            AlertKind.NO_SIGN_OF_LIFE,
            f"Run {record.driver} gives no sign of life. What is in flight goes on, throttled; "
            "nothing more is started. Resume the plan in a new run, or cancel it.",
        )
    held = record.held_at is not None and (
        record.last_progress_at is None or record.held_at > record.last_progress_at
    )
    if held:
        yield Alert(
            AlertKind.HELD,
            "The plan waits for another client's reassignment to end; the parameter additional "
            "would let it run beside that.",
        )
    elif record.last_progress_at is not None:
        still = signs.now - record.last_progress_at
        if still > timedelta(seconds=signs.patience_s):
            yield Alert(
                AlertKind.NOTHING_MOVES,
                f"Nothing has moved for {duration_text(still.total_seconds())}.",
            )
    yield from _of_rate(signs)
    if signs.flow is not None and signs.flow.silent:
        yield Alert(
            AlertKind.SILENT_BROKERS,
            f"{brokers_text(signs.flow.silent).capitalize()} did not answer at the last poll.",
        )
    if signs.window_end and signs.ends_at and signs.ends_at > signs.window_end:
        late = (signs.ends_at - signs.window_end).total_seconds()
        yield Alert(
            AlertKind.LATE,
            f"At this pace the last copy ends {duration_text(late)} after the window closes. "
            "What has not started by then is left for the next window.",
        )


def _of_rate(signs: Signs) -> Iterator[Alert]:
    """Strain holds from the cut of the throttle until it is back at what was asked for."""
    cuts = [change for change in signs.rates if change.reason is RateReason.STRAIN]
    last = signs.rates[-1] if signs.rates else None
    if not cuts or last is None or last.target_bytes_per_s >= last.limit_bytes_per_s:
        return
    cut = cuts[-1]
    yield Alert(
        AlertKind.STRAIN,
        f"Throttle cut at {cut.at:%H:%M:%S} UTC: {cut.cause}. It is at "
        f"{bytes_text(last.target_bytes_per_s)}/s of {bytes_text(last.limit_bytes_per_s)}/s asked "
        "for, and grows again when partitions are well.",
    )
