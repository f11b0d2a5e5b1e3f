"""Why an answer of a person's does not count, or what becomes of it; and why it is asked again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from rehome.domain.text import second_text
from rehome.errors import sentence
from rehome.run.asking.answer_fault import AnswerFault, Fault

_FAULTS: Mapping[AnswerFault, str] = {
    AnswerFault.SHOWN_NOT_KNOWN: "the ledger does not know what was shown: it was asked before an "
    "upgrade of Rehome, or by another ledger.",
    AnswerFault.ANSWERED_BEFORE: "that question had an answer before.",
    AnswerFault.NO_PERSON: "Airflow does not say who has answered.",
    AnswerFault.OTHER_TEXT: "what was approved is another text than the one asked.",
    AnswerFault.NO_OPTION: "it names no option that there was.",
    AnswerFault.CHANGED: "what was approved is not what would run by now: {said}.",
    AnswerFault.PROPOSAL_CHANGED: "the run proposes something else by now.",
    AnswerFault.FILE_CHANGED: "{said} is not what was linked.",
    AnswerFault.RUNS_UNTHROTTLED: "it is to run without a throttle: reject it, and trigger "
    "another.",
    AnswerFault.NO_RATE: "`{said}` is no throttle: write 50 MB/s, or 50000000.",
    AnswerFault.RATE_REFUSED: "{said} cannot be had. {why}",
    AnswerFault.OWN_RATE: "{said} is more than was asked for. Who raises the throttle may not "
    "approve the plan. Let the person who asked for the plan send it back with this throttle, or "
    "reject it, and trigger a new run with this throttle.",
    AnswerFault.TO_BE_TRIED: "to be tried out with {said}.",
}
A_PERSON = "a person who is not known"
_ASKED_ANEW = "Nothing is approved by it. This task asks anew by itself: answer the new question."
STALE_TEXT = (
    "Airflow still shows the text of an earlier question of this task. An answer to it would not "
    "be about what is to be approved now, so no answer is taken and nothing is approved. Airflow "
    "starts this task again by itself, and it then asks. If each attempt ends so, the API server "
    "or the scheduler runs without Rehome's plugin: install it there, restart both, and clear this "
    "task."
)
APPROVE_EXACTLY = "\nTo approve exactly this, choose `{option}`.\n"
OTHER_THROTTLE = "With Send back: the throttle to try the plan out with, such as 20 MB/s."


def fault_text(fault: Fault) -> str:
    """As the ledger keeps it, and the next question shows it."""
    return _FAULTS[fault.kind].format(said=fault.said, why=fault.why)


def asked_anew_text(plan_id: str, who: str, why: str, *, sent_back: bool) -> str:
    """What the task's log says before it asks again.

    :param who: has answered; "" = that is not known.
    """
    who = who or A_PERSON
    what = sentence(why)
    if sent_back:
        return f"{who} has sent {plan_id} back: {what} {_ASKED_ANEW}"
    return f"The answer of {who} about {plan_id} does not count: {what} {_ASKED_ANEW}"


def asked_after_text(who: str, why: str) -> str:
    """Why a question is asked again that had an answer."""
    return f"Asked again after {who}'s answer: {why}"


def unanswered_text(at: datetime) -> str:
    """Why one is asked again whose answer is not known."""
    return (
        f"Asked again: the question of {second_text(at)} has no answer in the ledger. It was "
        "withdrawn, or its answer could not be recorded: then that answer does not count."
    )


def lapsed_approval_text(by: str, why: str) -> str:
    """Why one is asked whose plan was approved before."""
    return f"The approval by {by} does not hold any more, so you are asked anew: {why}."


def not_counted_text(by: str) -> str:
    """Of an approval that the policy does not accept."""
    return f"by {by} it does not count for the policy"


def other_report_text(name: str) -> str:
    """Of a file that the person was to read."""
    return f"{name} is another one than the one that was linked"
