"""What becomes of what is asked of a plan, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rehome.domain.text import bytes_text, clock_text, count_text, named_errors
from rehome.execution.control.answers import (
    CancelledHere,
    CancelledUnstarted,
    ControlAnswer,
    HandedOver,
    HoldsFrom,
    NotToPause,
    PaceAsked,
    Pausing,
    RunFor,
    RunNeeded,
    ThrottlesLeft,
    ToCancel,
    ToPause,
)
from rehome.execution.control.words.cancel_words import taken_back_text

_RUNS: Mapping[RunFor, str] = {
    RunFor.CARRY_OUT: "A run of reassign_partitions carries the plan out.",
    RunFor.GO_ON: "A run of reassign_partitions resumes the plan.",
    RunFor.TAKE_BACK: "A run of reassign_partitions takes the plan back.",
}


def answer_text(answer: ControlAnswer) -> str:
    """What happens now."""
    match answer:
        case RunNeeded():
            return _run(answer)
        case HandedOver():
            return _handed_over(answer)
        case ToPause():
            return _pause(answer)
        case NotToPause():
            return _no_pause(answer)
        case PaceAsked():
            return _pace(answer)
        case ToCancel():
            return _to_cancel(answer)
        case CancelledUnstarted():
            return "The plan is cancelled. By the ledger nothing of it had started."
    return _cancel_text(answer)


def _run(answer: RunNeeded) -> str:
    text = _RUNS[answer.purpose]
    if answer.window_closed:
        text += " The plan's window has closed: the run has none."
    if answer.queued:
        text += " That DAG is paused in Airflow: the run stays queued until it is unpaused."
    return text


def _handed_over(answer: HandedOver) -> str:
    text = "The plan is handed over to the windows of its cluster."
    if answer.before:
        first = ", ".join(answer.before)
        text += f" A window carries out one plan, and these were handed over before it: {first}."
    return text


def _pause(answer: ToPause) -> str:
    match answer.when:
        case Pausing.STAYS_PAUSED:
            return (
                "The plan is paused already. From now on no window resumes it: only a person does."
            )
        case Pausing.WHEN_A_RUN_GOES_ON:
            return (
                f"The request to pause is recorded. {_silent(answer.driver)} So nothing pauses "
                "until a run resumes the plan. Resume the plan, or cancel it."
            )
    return (
        "From the next poll on nothing more is started; the plan is paused when what is in flight "
        "has ended."
    )


def _no_pause(answer: NotToPause) -> str:
    if answer.paused_dag is None:
        return "The plan runs, and no pause is asked for any more."
    return (
        f"No pause is asked for any more. But the DAG {answer.paused_dag} is paused in Airflow: no "
        f"task of run {answer.run_id} starts before that DAG is unpaused. Then the run goes on by "
        "itself; if it does not, resume the plan again."
    )


def _pace(answer: PaceAsked) -> str:
    pace_text = _pace_text(answer)
    match answer.holds:
        case HoldsFrom.RUN_GOES_ON:
            return (
                f"{pace_text}. This is recorded, and holds as soon as a run resumes the plan. "
                f"{_silent(answer.driver)} Resume the plan, or cancel it."
            )
        case HoldsFrom.DAG_UNPAUSED:
            return (
                f"{pace_text}. This is recorded, and holds once the DAG {answer.dag_id} is unpaused"
                ": until then no task of its run starts, and the plan goes on as it was."
            )
        case HoldsFrom.NEXT_POLL:
            return f"{pace_text}, from the next poll on."
    return f"{pace_text}. This holds when the plan runs."


def _pace_text(answer: PaceAsked) -> str:
    if answer.moves_per_broker is not None:
        moves = count_text(answer.moves_per_broker, "move")
        return f"The plan is to make at most {moves} at once for each broker and direction"
    said = []
    if answer.rate_bytes_per_s is not None:
        said.append(f"{bytes_text(answer.rate_bytes_per_s)}/s per broker and direction")
    if answer.by_broker is not None:
        said.append("; ".join(answer.by_broker.lines()) or "that of no single broker any more")
    return f"The throttle is to be {', and '.join(said)}"


def _to_cancel(answer: ToCancel) -> str:
    throttles = "" if answer.unthrottled else "; then its throttles are taken back"
    return (
        f"The next poll cancels what is in flight of the plan{throttles}. Should run "
        f"{answer.driver} be dead, cancel the plan again after {clock_text(answer.lease_ends_at)}."
    )


def _cancel_text(answer: CancelledHere) -> str:
    said = ["The plan is cancelled.", *_what_flew(answer), _throttles(answer.throttles)]
    return " ".join(said)


def _what_flew(answer: CancelledHere) -> Iterator[str]:
    done = answer.done
    if done.cancelled:
        yield f"{taken_back_text(len(done.cancelled))}."
    elif not done.not_cancelled:
        yield "Nothing was in flight."
    if done.errors:
        yield f"These go on, {answer.record.goes_on}: {named_errors(done.errors)}."
    if done.owed:
        yield (
            "The broker of these is not alive: should copies between its log dirs have begun, they "
            f"are taken back when it returns: {named_errors(done.owed)}."
        )


def _throttles(left: ThrottlesLeft) -> str:
    if left.owed:
        settings = count_text(len(left.owed), "throttle setting is", "throttle settings are")
        return f"{settings} pending cleanup."
    if left.of_others:
        others = count_text(
            left.of_others,
            "throttle setting holds a value that this ledger has not set: it stays",
            "throttle settings hold values that this ledger has not set: they stay",
        )
        return (
            f"{others}. Delete by hand what no other client needs. Nothing else of the plan's "
            "throttles is left."
        )
    return "No throttle is left."


def _silent(driver: str) -> str:
    return f"Run {driver}, which drives the plan, sends no heartbeat."
