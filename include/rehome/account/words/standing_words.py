"""Where a plan stands, in words: for its page, report, notes and messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rehome.account.account import PlanAccount
from rehome.account.standing import PlanStep, Stand
from rehome.account.words.attempt_words import label_of, superseded_text, tried_text
from rehome.account.words.finding_words import found_sentence
from rehome.account.words.hurt_words import hurt_text
from rehome.account.words.step_words import handed_over_words, next_step_of, waits_text, worst_hurt
from rehome.domain.plan.infeasible_lines import lines_not_reached
from rehome.domain.run.findings import Severity
from rehome.domain.run.states import MoveState, PlanState
from rehome.domain.text import count_text, duration_text
from rehome.errors import sentence
from rehome.execution.completion.words.end_words import demotion_text, not_elected_text

_UNCHANGED = "Nothing was changed on the cluster."
_IN_PLACE = "Every partition is where the plan says"

_Text = Callable[[PlanAccount], str]


@dataclass(frozen=True, slots=True)
class StatusText:
    """Where a plan stands, for people.

    :param label: in one or two words.
    :param headline: what happened, in one sentence.
    :param state_left: what is true of the cluster now.
    :param next_step: what the reader should do; ``step_here``: the same for one who has the button
        that the step is about.
    """

    label: str
    headline: str
    state_left: str
    next_step: str
    step_here: str = ""


def status_of(account: PlanAccount) -> StatusText:
    """A standing in words."""
    stand, tried = account.standing.stand, account.standing.tried
    label, headline = _LABELS[stand](account), _HEADLINES[stand](account)
    left = _rest_text(account)
    if tried is not None and account.waits_to_start:
        waits = f" {headline}" if PlanStep.AS_IT_WAITS in account.standing.steps else ""
        label, headline = label_of(tried.cause.kind), f"{tried_text(tried)}{waits}"
        left = tried.cause.left or left
    elif tried is not None and account.state in (PlanState.FAILED, PlanState.CANCELLED):
        headline = tried_text(tried)
    elif tried is not None:
        headline = f"{tried_text(tried)} {headline}"
    step, here = next_step_of(account)
    return StatusText(label, headline, left, step, here)


def _rest_text(account: PlanAccount) -> str:
    match account.standing.stand:
        case Stand.RUNNING | Stand.HURT | Stand.LEFT_RUNNING | Stand.ROLLED_BACK | Stand.FINISHING:
            return _throttles(account)
        case Stand.PAUSED:
            return f"Nothing of it is in flight. {_throttles(account)}"
        case Stand.DONE:
            proof = account.files.verification or {}
            return (
                f"{_gone_text(len(proof.get('gone', ())))}{_unpaid_text(account)}"
                f"{_out_of_isr(len(proof.get('findings', ())))}{_throttles(account)}"
            )
        case Stand.FAILED | Stand.CANCELLED:
            return _of_all(account)
    done = account.state is PlanState.DONE and account.standing.stand not in _WITHOUT_MOVES
    return _throttles(account) if done else _UNCHANGED


_WITHOUT_MOVES = (Stand.NOT_REACHED, Stand.AS_ASKED)


def _gone_text(partitions: int) -> str:
    """A sentence on partitions that need no moving any more; "" = none."""
    if not partitions:
        return ""
    are = count_text(partitions, "partition of the plan is", "partitions of the plan are")
    return f"{are} gone, as the topic was deleted: these need no moving any more. "


def _unpaid_text(account: PlanAccount) -> str:
    """A sentence on what a budget has left on drained brokers; "" = nothing."""
    count = len((account.files.drained or {}).get("unpaid", ()))
    if not count:
        return ""
    stay = count_text(count, "replica stays", "replicas stay")
    where = "on the brokers to be drained, because the budget is spent"
    return f"{stay} {where}: these brokers are not empty. "


def _out_of_isr(partitions: int) -> str:
    """A sentence on partitions that are done with a replica out of the ISR; "" = none."""
    if not partitions:
        return ""
    return f"{count_text(partitions, 'partition has', 'partitions have')} replicas out of the ISR. "


def _done_of_all(account: PlanAccount) -> str:
    moves = account.moves
    of = count_text(moves.total, "move is", "moves are")
    return f"{moves.count(MoveState.DONE):,} of {of} done"


def _of_all(account: PlanAccount) -> str:
    moves = account.moves
    parts = [f"{_done_of_all(account)} and stay where they are now."]
    if gone := moves.count(MoveState.GONE):
        parts.append(f"{count_text(gone, 'partition is', 'partitions are')} gone.")
    if untouched := moves.count(MoveState.PENDING, MoveState.CANCELLED):
        parts.append(f"{count_text(untouched, 'partition is', 'partitions are')} as before.")
    if failed := moves.count(MoveState.FAILED, MoveState.SUPERSEDED):
        parts.append(f"{count_text(failed, 'move')} failed: see why below.")
    if moves.in_flight:
        parts.append(f"{count_text(moves.in_flight, 'move')} may still be in flight.")
    return " ".join([*parts, _throttles(account)])


def _still_set(account: PlanAccount) -> str:
    many = account.throttles.still_set
    return count_text(
        many, "throttle setting is pending cleanup", "throttle settings are pending cleanup"
    )


def _throttles(account: PlanAccount) -> str:
    throttles = account.throttles
    if not throttles.ever:
        return "No throttle was set."
    if not throttles.still_set:
        return "No throttle setting is pending cleanup."
    if account.state.active:
        settings = count_text(throttles.still_set, "throttle setting is", "throttle settings are")
        return f"By its ledger {settings} set for it now."
    if throttles.finishing:
        settings = count_text(throttles.still_set, "throttle setting is", "throttle settings are")
        return f"{settings} still to be taken back by its run."
    return sentence(_still_set(account))


def _always(text: str) -> _Text:
    return lambda _: text


def _not_empty_label(account: PlanAccount) -> str:
    drained = account.files.drained or {}
    return "Not empty" if drained.get("left") else "Not proved"


_LABELS: Mapping[Stand, _Text] = {
    Stand.SUPERSEDED: _always("Superseded"),
    Stand.DRY_RUN_TO_COME: _always("Planned"),
    Stand.REFUSED: _always("Refused"),
    Stand.HANDED_OVER: _always("Waits for its window"),
    Stand.READY: _always("Ready"),
    Stand.GOING_ON: _always("Ready"),
    Stand.APPROVED: _always("Approved"),
    Stand.RUNNING: _always("Running"),
    Stand.HURT: _always("Running"),
    Stand.LEFT_RUNNING: _always("Without a run"),
    Stand.PAUSED: _always("Paused"),
    Stand.FINISHING: _always("Finishing"),
    Stand.NOT_VERIFIED: _always("Not verified"),
    Stand.DIFFERS: _always("Not verified"),
    Stand.OWES: _always("Pending cleanup"),
    Stand.NOT_EMPTY: _not_empty_label,
    Stand.NOT_DEMOTED: _always("Not demoted"),
    Stand.NOT_ELECTED: _always("Not elected"),
    Stand.NOT_REACHED: _always("Done"),
    Stand.AS_ASKED: _always("Done"),
    Stand.DONE: _always("Done"),
    Stand.FAILED_BEFORE: _always("Failed"),
    Stand.FAILED: _always("Failed"),
    Stand.REJECTED: _always("Cancelled"),
    Stand.CANCELLED_BEFORE: _always("Cancelled"),
    Stand.CANCELLED: _always("Cancelled"),
    Stand.ROLLED_BACK: _always("Rolled back"),
}


def _with_cause(what: str) -> _Text:
    return lambda account: f"The plan {what}: {account.record.cause}."


def _refused_text(account: PlanAccount) -> str:
    groups = [group for group in account.findings if group.kind.severity is Severity.ERROR]
    errors = sum(group.count for group in groups)
    return f"The dry run refuses this plan: {count_text(errors, 'error')}."


def _hurt(account: PlanAccount) -> str:
    return f"{hurt_text(worst_hurt(account))[0]} {_done_of_all(account)} so far."


def _paused_text(account: PlanAccount) -> str:
    words = waits_text(account)
    text = f"The plan is paused: {account.record.cause}." if words is None else words.text
    return f"{text} {_done_of_all(account)}."


def _not_empty(account: PlanAccount) -> str:
    drained = account.files.drained or {}
    in_dirs = drained.get("log_dirs")
    where = "in the log dirs to be emptied" if in_dirs else "on the brokers to be drained"
    left = len(drained.get("left", ()))
    replicas_text = f"{count_text(left, 'replica was', 'replicas were')} found {where}"
    return f"{_IN_PLACE}, but {replicas_text if left else f'what lies {where} could not be read'}."


def _not_elected(account: PlanAccount) -> str:
    leaders = account.files.leaders or {"refused": {}, "waiting": ()}
    return f"Not every preferred leader leads: {not_elected_text(leaders)}."


def _not_reached(account: PlanAccount) -> str:
    """What is in the way first; the page and the report list all of it."""
    lines = not_reached_of(account)
    more = f" Other reasons: {len(lines) - 1:,}, listed below." if len(lines) > 1 else ""
    return (
        f"Nothing can be moved, and what was asked for is not reached. {sentence(lines[0])}{more}"
    )


def not_reached_of(account: PlanAccount) -> tuple[str, ...]:
    """Why something that was asked for stays as it is: a line for each cause."""
    summary = account.files.summary
    return lines_not_reached(
        () if summary is None else summary.infeasible, cut_by_budget=account.record.cut_by_budget
    )


def _done_text(account: PlanAccount) -> str:
    elapsed, proof = account.elapsed, account.files.verification or {}
    took = "" if elapsed is None else f", after {duration_text(elapsed.total.total_seconds())}"
    moved = account.moves.total - len(proof.get("gone", ()))
    are = count_text(moved, "partition is", "partitions are")
    return f"{are} where the plan says{took}. A fresh read proves it."


def _rejected_text(account: PlanAccount) -> str:
    return f"The plan was rejected{_by(account)}."


def _cancelled_text(account: PlanAccount) -> str:
    return f"The plan was cancelled{_by(account)}: {account.record.cause}."


def _by(account: PlanAccount) -> str:
    return f" by {account.cancelled_by}" if account.cancelled_by else ""


_HEADLINES: Mapping[Stand, _Text] = {
    Stand.SUPERSEDED: lambda account: superseded_text(account.overtaken_by or ""),
    Stand.DRY_RUN_TO_COME: _always("The plan is made; its dry run is still to come."),
    Stand.REFUSED: _refused_text,
    Stand.HANDED_OVER: lambda account: handed_over_words(account).text,
    Stand.READY: lambda account: found_sentence(account.findings),
    Stand.GOING_ON: lambda account: found_sentence(account.findings),
    Stand.APPROVED: _always("The plan is approved and about to start."),
    Stand.RUNNING: lambda account: f"{_done_of_all(account)} so far.",
    Stand.HURT: _hurt,
    Stand.LEFT_RUNNING: lambda account: (
        f"{_done_of_all(account)} so far. No run drives the plan now."
    ),
    Stand.PAUSED: _paused_text,
    Stand.FINISHING: _always(
        "Every move has ended. The plan's run takes throttles back and proves the result."
    ),
    Stand.NOT_VERIFIED: _always(
        "Every move has ended, but the task verify has recorded no proof of it."
    ),
    Stand.DIFFERS: _always(
        "Every move has ended, but not every partition was found as the plan says."
    ),
    Stand.OWES: lambda account: f"{_IN_PLACE}, but {_still_set(account)}.",
    Stand.NOT_EMPTY: _not_empty,
    Stand.NOT_DEMOTED: lambda account: f"{_IN_PLACE}. {demotion_text(account.files.demoted or {})}",
    Stand.NOT_ELECTED: _not_elected,
    Stand.NOT_REACHED: _not_reached,
    Stand.AS_ASKED: _always("The cluster was already as asked: nothing had to move."),
    Stand.DONE: _done_text,
    Stand.FAILED_BEFORE: _with_cause("failed before it started"),
    Stand.FAILED: _with_cause("failed"),
    Stand.REJECTED: _rejected_text,
    Stand.CANCELLED_BEFORE: _cancelled_text,
    Stand.CANCELLED: _cancelled_text,
    Stand.ROLLED_BACK: _with_cause("was rolled back"),
}
