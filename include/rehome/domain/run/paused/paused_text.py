"""What a plan waits for that is paused, or was handed over, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rehome.domain.run.paused.paused_plan import GoesOn, NeedsPerson, Outlook, RefusedResume, Why
from rehome.domain.text import count_text, minute_text
from rehome.errors import SENTENCE_ENDS

BEFORE = "To go on before, or to stop for good, resume or cancel it with control_reassignment."
WAYS_OUT = (
    "Raise the plan's throttle (change_throttle), or resume it without a window, with "
    "control_reassignment; or give its cluster a longer window."
)
"""For what no window is long enough for."""
WAYS_OUT_HERE = (
    "Resume the plan without a window, or with a higher throttle; or give its cluster a longer "
    "window. "
    "Or cancel it."
)
WAYS_OUT_PLANNED = (
    "Hand it over with a higher throttle, run it without a window, or give its cluster a longer "
    "window."
)
RUN_BEFORE = "To carry it out now, run it; to stop for good, cancel it"
BEFORE_HERE = "To go on before, resume it; to stop for good, cancel it."
_BY_PERSON = "Then a window can resume the plan. Or resume it now, or cancel it"
DECIDE_HERE = "Resume the plan, or cancel it."
DECIDE = "Resume the plan, or cancel it, with control_reassignment."


@dataclass(frozen=True, slots=True)
class PausedText:
    """What people read of a plan that waits.

    :param text: what it waits for.
    :param next_step: what the reader should do; ``step_here``: the same for one who has the button
        that resumes it.
    """

    text: str
    next_step: str
    step_here: str = DECIDE_HERE


def paused_text(outlook: Outlook, refusal: RefusedResume | None = None) -> PausedText:
    """An outlook in words.

    :param refusal: why the last run that was to resume the plan did not; None = none was.
    """
    if outlook.handed_over:
        return _handed_over(outlook)
    match outlook:
        case GoesOn():
            words = _goes_on(outlook)
        case NeedsPerson():
            words = _needs_person(outlook)
    if refusal is None:
        return words
    text = f"{words.text} {_why_refused(refusal)}"
    step = _after_refusal(outlook, refusal)
    return replace(words, text=text, next_step=step, step_here=step)


def handed_over_text(outlook: Outlook) -> str:
    """What becomes of a plan that was handed over to the windows of its cluster."""
    if isinstance(outlook, NeedsPerson):
        because = _REASONS[outlook.why].format(detail=outlook.detail.rstrip("."))
        return f"No window takes the plan up, because {because}. {_REMEDIES[outlook.why]}".rstrip()
    unless = "" if outlook.sure else ", if rebalance_in_window is unpaused"
    window = f"The window that opens at {minute_text(outlook.opens_at)}"
    if outlook.stuck:
        return (
            f"{window} takes the plan up{unless}, and starts no move of it: at the throttle that "
            f"was asked for, each copies for longer than that window is open. {WAYS_OUT_PLANNED}"
        )
    return f"{window} carries the plan out{unless}."


def _handed_over(outlook: Outlook) -> PausedText:
    text = f"This plan is handed over to the windows of its cluster. {handed_over_text(outlook)}"
    match outlook:
        case GoesOn():
            step = "" if outlook.stuck else "Nothing."
            if not outlook.sure:
                step = _REMEDIES[Why.WINDOW_DAG_PAUSED]
        case NeedsPerson():
            step = _REMEDIES[outlook.why]
    step = f"{step} {RUN_BEFORE}".lstrip()
    return PausedText(text, f"{step}, with control_reassignment.", f"{step}.")


def _why_refused(refusal: RefusedResume) -> str:
    others = f", and {count_text(refusal.others, 'other error')}" if refusal.others else ""
    return (
        "The last run that was to resume this plan was refused by its dry run: "
        f"{refusal.error.rstrip('.')}{others}."
    )


def _after_refusal(outlook: Outlook, refusal: RefusedResume) -> str:
    remedy = _sentence(refusal.remedy)
    if isinstance(outlook, NeedsPerson):
        return remedy if refusal.breaks_limits else f"{remedy} {DECIDE}".lstrip()
    if refusal.breaks_limits:
        return (
            "Nothing: the next window's run cancels the plan if the plan still breaks a limit. "
            f"Or {_lower(remedy)}"
        )
    once = "Once that is fixed, the" if remedy else "The"
    ways = (
        f"{once} next window resumes the plan by itself. To go on before, resume it with "
        "control_reassignment."
    )
    return f"{remedy} {ways}".lstrip()


def _sentence(text: str) -> str:
    return text if not text or text.endswith(SENTENCE_ENDS) else f"{text}."


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _goes_on(outlook: GoesOn) -> PausedText:
    cause, at = "The end of the window has paused this plan.", minute_text(outlook.opens_at)
    opened = f"in the window that has been open since {at}"
    when = opened if outlook.is_open else f"when the next window opens, at {at}"
    if outlook.stuck:
        unless = "" if outlook.sure else ", if it is unpaused"
        text = (
            f"{cause} No move of it could end in that window, and perhaps none can end in the next "
            f"one. rebalance_in_window takes it up once more {when}{unless}."
        )
        return PausedText(text, f"{WAYS_OUT} Or cancel it.", WAYS_OUT_HERE)
    if not outlook.sure:
        text = f"{cause} It goes on {when}, if rebalance_in_window is unpaused."
        step = "See that rebalance_in_window is unpaused."
        return PausedText(text, f"{step} {BEFORE}", f"{step} {BEFORE_HERE}")
    text = f"{cause} It goes on by itself {when}: rebalance_in_window takes it up."
    step, here = f"Nothing. {BEFORE}", f"Nothing. {BEFORE_HERE}"
    return PausedText(text, step, here)


def _needs_person(outlook: NeedsPerson) -> PausedText:
    if outlook.why is Why.PAUSED_BY_PERSON:
        text = (
            "A person has paused this plan. No window resumes it: it waits until a person "
            "resumes or cancels it, and no other plan of its cluster starts meanwhile."
        )
        return PausedText(text, DECIDE)
    because = _REASONS[outlook.why].format(detail=outlook.detail.rstrip("."))
    text = f"The end of the window has paused this plan. No window resumes it, because {because}."
    remedy = _REMEDIES[outlook.why]
    here = f"{remedy} {_BY_PERSON}." if remedy else DECIDE_HERE
    return PausedText(text, _step(remedy), here)


_REASONS: Mapping[Why, str] = {
    Why.NO_WINDOW: "its cluster has no windows, or none of them opens again",
    Why.NO_WINDOW_DAG: "no rebalance_in_window runs for this cluster",
    Why.WINDOW_DAG_PAUSED: "rebalance_in_window is paused in Airflow",
    Why.NOT_KNOWN: "the settings of its cluster's windows cannot be read: {detail}",
}
_REMEDIES: Mapping[Why, str] = {
    Why.NO_WINDOW: "",
    Why.NO_WINDOW_DAG: "",
    Why.WINDOW_DAG_PAUSED: "Unpause rebalance_in_window.",
    Why.NOT_KNOWN: "Correct these settings.",
}


def _step(remedy: str) -> str:
    return f"{remedy} {_BY_PERSON}, with control_reassignment." if remedy else DECIDE
