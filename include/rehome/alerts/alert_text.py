"""The words of alerts about plans and clusters; those of a run's end are in ``run_end``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from rehome.account.words.unsent_words import UNSENT_STEP, unsent_text
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.run.flows import RateChange
from rehome.domain.run.ledger_view import DataSeen
from rehome.domain.text import (
    brokers_text,
    bytes_text,
    clock_text,
    count_text,
    duration_text,
    first_names,
    minute_text,
)
from rehome.ledger.base.records import PlanRecord, ThrottleEntry, ThrottleState

SWEPT = (
    "sweep_throttles runs by its schedule for the connection kafka_default and for each cluster of "
    "the clusters file."
)

HIGHER = "A higher throttle, with control_reassignment, may bring it in."

END_IT = (
    "Have the client that started it cancel it: "
    "kafka-reassign-partitions.sh --cancel --preserve-throttles. One that waits for a dead broker "
    "ends when that is back, too. While no replica of before is in sync the controller refuses a "
    "cancel: the DAG foreign_reassignments says what ends it then."
)
"""How a reassignment of another client that hangs is ended."""

_ASKED_AGAIN = "Check load and network there: each poll asks again."

AlertText = tuple[str, str]
"""What it is, and the next step."""


def failed_moves(count: int) -> AlertText:
    """Moves of a plan have failed."""
    return f"{count_text(count, 'move')} failed.", "The table below names the cause of each."


def data_lost(lost: Mapping[TopicPartition, DataSeen]) -> AlertText:
    """Messages are gone that all in-sync replicas had."""
    losses = [f"{partition}: {data.lost_text}" for partition, data in sorted(lost.items())]
    return (
        f"Of {count_text(len(lost), 'partition')} in flight {first_names(losses, '; ')}. The plan "
        "sends nothing more for them, and ends as failed; everything else goes on.",
        "Either a broker came back without its data, or a replica was elected that had not all of "
        "it. Keep the disks of the brokers that had the partition as they are: what is left of "
        "the messages may be there. Replicas that return cut off what their leader does not have.",
    )


def throttles_left(count: int) -> AlertText:
    """As the page shows it, which knows the number alone."""
    return (
        f"{count_text(count, 'setting')} of this plan (throttles or cordons) may still be set on "
        "the cluster.",
        "sweep_throttles takes them back once their brokers answer.",
    )


def owed_text(settings: Sequence[str], copies: Sequence[str], connection: str) -> AlertText:
    """Settings and copies of a plan that runs no more.

    :param settings: throttles and cordons, each with why it is owed.
    :param copies: partitions whose copy could not be stopped, or of which that is not known.
    """
    parts = []
    if settings:
        parts.append(f"Not taken back yet: {first_names(settings, '; ')}.")
    if copies:
        parts.append(f"Still copied, or not known not to be: {first_names(copies)}.")
    where = (
        "Its schedule includes this cluster."
        if connection == "kafka_default"
        else f"{SWEPT} For a cluster that is neither, trigger it with kafka_config_id "
        f"{connection or 'of the connection that leads there'}."
    )
    return (
        " ".join(parts),
        "Start the brokers that are away, and wait until copies that could not be cancelled have "
        "ended. The DAG sweep_throttles then takes back what is listed here. "
        f"{where}",
    )


def orphaned_text(record: PlanRecord, in_flight: int) -> AlertText:
    """A plan runs, and its run sends no heartbeat.

    :param in_flight: moves that the ledger has as such.
    """
    return (
        f"The plan is running, but its run {record.driver} sends no heartbeat. "
        f"{_by_last_poll(record, in_flight)}",
        "Resume or cancel the plan with control_reassignment.",
    )


def dag_paused(record: PlanRecord, in_flight: int) -> AlertText:
    """A plan runs, and its DAG is paused: whether its trigger still watches is another matter.

    :param in_flight: moves that the ledger has as such.
    """
    return (
        f"The plan is running, but its DAG {record.dag_id} is paused in Airflow: no task of run "
        f"{record.run_id} starts. {_by_last_poll(record, in_flight)}",
        f"Unpause the DAG {record.dag_id}: the run then goes on by itself. Or cancel the plan with "
        "control_reassignment.",
    )


def _by_last_poll(record: PlanRecord, in_flight: int) -> str:
    if not in_flight:
        return "By the ledger no move of the plan is in flight, and none is started."
    goes_on = "goes on" if in_flight == 1 else "go on"
    ends = record.request.get("window_end")
    kept = f" until its window's end ({ends}), which its trigger or the sweep keeps"
    until = kept if ends else ""
    return (
        f"By the ledger {count_text(in_flight, 'move')} in flight {goes_on}, {record.goes_on}"
        f"{until}; nothing more is started."
    )


def not_cancelled(record: PlanRecord, gives_up_s: float) -> AlertText:
    """Moves in flight are refused to be cancelled."""
    refusals = sorted(record.refused_cancels.items())
    first = min(each.since for _, each in refusals)
    examples = first_names([f"{partition}: {each.answer}" for partition, each in refusals], "; ")
    return (
        f"{count_text(len(refusals), 'move')} in flight could not be cancelled since "
        f"{clock_text(first)}: {examples}.",
        "Start the brokers that hold the old replicas: the controller is asked again about once a "
        f"minute. If the plan is to end, it ends after {gives_up_s:g} s in any case; copies that "
        f"could not be cancelled then go on, {record.goes_on}, until they have ended.",
    )


def held_text() -> AlertText:
    """Another client's reassignment goes first."""
    return (
        "The plan waits for another client's reassignment to end.",
        "Wait until that reassignment has ended; or trigger a new run with the parameter "
        "additional, "
        "which lets both run at the same time. A reassignment that adds a replica on a dead "
        "broker, or was sent back in mid-copy, does not end by itself. "
        f"{END_IT}",
    )


def stalled_text(
    since: datetime,
    now: datetime,
    waits_for: str,
    *,
    only_waits: bool,
    hangs: bool = False,
    gives_up_s: float,
    unthrottled: bool,
) -> AlertText:
    """Nothing moves.

    :param waits_for: why moves do not start; "" = none has to wait, or it is not known.
    :param hangs: that reassignment cannot end by itself.
    :param only_waits: it does nothing but wait for another client's reassignment.
    """
    still = duration_text((now - since).total_seconds())
    text = f"Nothing has moved since {clock_text(since)} ({still})."
    if waits_for:
        text += f" What waits, and why: {waits_for}."
    if only_waits and hangs:
        return text, f"That reassignment does not end by itself. {END_IT} The plan then goes on."
    if only_waits:
        return (
            text,
            "No step is needed: the plan goes on when the other client's reassignment has ended.",
        )
    and_rate = "" if unthrottled else " and the rate of the throttle"
    return (
        text,
        f"Copies in flight go on. After {gives_up_s:g} s without progress they are cancelled, and "
        f"the run fails. Check the destination brokers{and_rate}.",
    )


def throttle_lowered(cut: RateChange, last: RateChange) -> AlertText:
    """The governor has cut the rate.

    :param cut: when and why; ``last``: what holds now.
    """
    return (
        f"Throttle cut at {clock_text(cut.at)}: {cut.cause}. It is at "
        f"{bytes_text(last.target_bytes_per_s)}/s of {bytes_text(last.limit_bytes_per_s)}/s asked "
        "for.",
        "The throttle grows again by itself when partitions are well. Find out what else loads the "
        "brokers.",
    )


def throttle_restored(entries: Sequence[ThrottleEntry], poll_interval_s: float) -> AlertText:
    """Throttles are removed by another client, again and again, or cannot be put back.

    :param entries: as they are now: each was set again, unless it is not applied.
    """
    first, lost = entries[0], [e for e in entries if e.state is not ThrottleState.APPLIED]
    more = f" (and {len(entries) - 1} others)" if len(entries) > 1 else ""
    left = (
        f"{lost[0].resource} {lost[0].key} could not be set again the last time: "
        "what relies on it goes on WITHOUT a throttle."
        if lost
        else "Each time it was set again."
    )
    return (
        f"{first.resource} {first.key}{more} was gone {count_text(first.times_gone, 'time')} "
        f"while moves in flight relied on it. {left} Until the next poll, every "
        f"{poll_interval_s:g} s, they run without a throttle.",
        "Find out who removes the throttle: kafka-reassign-partitions does (--cancel, or "
        "--execute with a "
        "throttle, for the same topic, without --preserve-throttles). Or pause the plan with "
        "control_reassignment.",
    )


def silent(brokers: Sequence[BrokerId]) -> AlertText:
    """Brokers did not answer."""
    return f"{brokers_text(brokers).capitalize()} did not answer at the last poll.", _ASKED_AGAIN


def window_will_be_missed(
    ends_at: datetime, window_end: datetime, *, unthrottled: bool
) -> AlertText:
    """At this pace the rest does not fit."""
    late = duration_text((ends_at - window_end).total_seconds())
    return (
        f"At this pace the last copy ends {late} after the window closes, which is at "
        f"{minute_text(window_end)}.",
        "What has not started by then is left for the next window."
        + ("" if unthrottled else f" {HIGHER}"),
    )


def outpaced_text(where: Sequence[str]) -> AlertText:
    """Producers write more than the throttle lets through."""
    return (
        f"At this rate {first_names(where, '; ')}. The time left is not known.",
        "Raise the throttle above the rate named here (control_reassignment, change_throttle). "
        "Where "
        "the approval or a policy forbids that, cancel the plan, and move these partitions when "
        "less is written to them.",
    )


def foreign_leftovers(throttles: Collection[str]) -> AlertText:
    """Throttles that no plan has set, while nothing is reassigned."""
    return (
        "Throttles are set though nothing is being reassigned, and this ledger has none of them to "
        f"take back: {first_names(list(throttles), '; ')}. They are probably left over, by another "
        "client or by a plan that this ledger does not know. Rehome leaves them alone.",
        "Ask who set them; kafka-configs --alter --delete-config takes them back.",
    )


def disk_forecast(
    full: Sequence[tuple[BrokerId, float, float]], days: float, *, after: bool
) -> AlertText:
    """Disks will be full soon.

    :param full: broker, days until its disks are full, and the growth of its replicas in bytes per
        second; the soonest first.
    :param after: as a plan would leave them.
    """
    when = "after the move" if after else "from now"
    lines = [
        f"broker {broker} in {left:.1f} days (it grows by {bytes_text(growth)}/s)"
        for broker, left, growth in full
    ]
    return (
        f"At the growth of their replicas disks are full within {days:g} days, counted {when}: "
        f"{first_names(lines, '; ')}.",
        "Move replicas away, shorten the retention of topics that grow, or add disks.",
    )


def approval_waiting(
    what: str, window_end: datetime | None, lapses_at: datetime | None
) -> AlertText:
    """A run waits for a person.

    :param what: what the person is asked to approve.
    :param window_end: until when the plan could run; None = there is no end.
    :param lapses_at: when Airflow stops waiting for an answer; None = never.
    """
    until = f" Its window closes at {minute_text(window_end)}." if window_end else ""
    if lapses_at is not None:
        until += f" The question lapses at {minute_text(lapses_at)}."
    return (
        f"A run waits for a person's approval: {what}.{until}",
        "Open the page; approve it, send it back or reject it.",
    )


def last_call(text: str) -> str:
    """The alert of an approval once more, shortly before its deadline."""
    return f"{text} There is no answer yet, and less than an hour is left."


def channel_failed(kind: str, channels: Sequence[str], why: str) -> AlertText:
    """An alert has not reached everybody."""
    return unsent_text(kind, channels, why), UNSENT_STEP
