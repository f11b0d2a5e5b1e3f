"""What a paused plan waits for, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from include.domain.text import count_text
from include.errors import SENTENCE_ENDS
from include.watching.paused_plan import GoesOn, NeedsPerson, Outlook, RefusedResume, ResumedBy, Why

BEFORE = "To go on before, or to stop for good, resume or cancel it with control_reassignment."
DECIDE = "Resume it, or cancel it, with control_reassignment."


@dataclass(frozen=True, slots=True)
class PausedText:
    """What people read of a paused plan.

    :param label: a few words, for a table.
    :param text: what it waits for; ``next_step``: what the reader should do.
    """

    label: str
    text: str
    next_step: str


def paused_text(outlook: Outlook, refused: RefusedResume | None = None) -> PausedText:
    """An outlook in words.

    :param refused: why the last run that was to go on with the plan did not; None = none was.
    """
    match outlook:
        case GoesOn():
            words = _goes_on(outlook)
        case NeedsPerson():
            words = _needs_person(outlook)
    if refused is None or (isinstance(outlook, GoesOn) and outlook.by is ResumedBy.RUN):
        return words
    text = f"{words.text} {_why_refused(refused)}"
    return replace(words, text=text, next_step=_after_refusal(outlook, refused))


def _why_refused(refused: RefusedResume) -> str:
    others = f", and {count_text(refused.others, 'other error')}" if refused.others else ""
    return (
        "The last run that was to go on with it was refused by its dry run: "
        f"{refused.error.rstrip('.')}{others}."
    )


def _after_refusal(outlook: Outlook, refused: RefusedResume) -> str:
    remedy = _sentence(refused.remedy)
    if isinstance(outlook, NeedsPerson):
        return remedy if refused.breaks_limits else f"{remedy} {DECIDE}".lstrip()
    if refused.breaks_limits:
        return f"Nothing: the next run gives it up if it still breaks a limit. Or {_lower(remedy)}"
    return f"{remedy} Then it goes on by itself, or resume it with control_reassignment.".lstrip()


def _sentence(text: str) -> str:
    return text if not text or text.endswith(SENTENCE_ENDS) else f"{text}."


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _goes_on(found: GoesOn) -> PausedText:
    if found.by is ResumedBy.RUN:
        text = f"Run {found.run_id} was started to go on with it."
        return PausedText("a run goes on with it", text, "Nothing: see that run.")
    cause = "Paused by the end of the window."
    label = f"goes on by itself at {_time(found.opens_at or found.at)}"
    if found.by is ResumedBy.WATCHING:
        starts = f"watch_clusters starts a run with the first snapshot after {_time(found.at)}."
    elif found.sure:
        starts = "rebalance_in_window takes it up."
    else:
        label = f"goes on at {_time(found.opens_at or found.at)} if rebalance_in_window is unpaused"
        text = f"{cause} It goes on {_when(found)}, if rebalance_in_window is unpaused."
        return PausedText(label, text, f"See that rebalance_in_window is unpaused. {BEFORE}")
    if found.stopped_until is not None:
        label = f"goes on by itself at {_time(found.at)}"
        cause += f" Too many heals were started, or have failed: until {_time(found.stopped_until)}"
        cause += " none starts."
    text = f"{cause} It goes on by itself {_when(found)}: {starts}"
    return PausedText(label, text, f"Nothing. {BEFORE}")


def _when(found: GoesOn) -> str:
    if found.opens_at is None:
        return "without a window, as the cluster has none by now"
    if found.is_open:
        return f"in the window that has been open since {_time(found.opens_at)}"
    return f"when the next window opens, at {_time(found.opens_at)}"


def _needs_person(found: NeedsPerson) -> PausedText:
    if found.why is Why.PAUSED_BY_PERSON:
        text = "A person has paused it, and it waits for a person to resume it."
        return PausedText("paused by a person", text, DECIDE)
    because = _REASONS[found.why].format(detail=found.detail.rstrip("."))
    text = f"Paused by the end of the window. It waits for a person, because {because}."
    return PausedText("waits for a person", text, _step(_REMEDIES[found.why]))


_REASONS: Mapping[Why, str] = {
    Why.NO_WINDOW: "no coming window is long enough",
    Why.NO_WINDOW_DAG: "no rebalance_in_window runs for this cluster",
    Why.WINDOW_DAG_PAUSED: "rebalance_in_window is paused in Airflow",
    Why.WATCHING_PAUSED: "watch_clusters, or its collect_snapshots, is paused in Airflow",
    Why.NOT_HEALED: "the watch rules no longer say heal for its finding",
    Why.NOT_ALLOWED: "the connection's policy does not allow {detail} in the next window",
    Why.DOMAIN_AWAY: "no broker is alive of {detail}",
    Why.TOO_MANY_DEAD: "more of the brokers are not alive than dead_fraction_to_stop allows",
    Why.HEALING_STOPPED: "the watch rules let no heal start",
    Why.NOT_KNOWN: "whether it may go on by itself cannot be read: {detail}",
}
_REMEDIES: Mapping[Why, str] = {
    Why.NO_WINDOW: "",
    Why.NO_WINDOW_DAG: "",
    Why.WINDOW_DAG_PAUSED: "Unpause rebalance_in_window.",
    Why.WATCHING_PAUSED: "Unpause watch_clusters and collect_snapshots.",
    Why.NOT_HEALED: "Let the watch rules heal its finding.",
    Why.NOT_ALLOWED: "Change the connection's policy.",
    Why.DOMAIN_AWAY: "Bring the brokers back: then it goes on by itself.",
    Why.TOO_MANY_DEAD: "Bring the brokers back: then it goes on by itself.",
    Why.HEALING_STOPPED: "Raise heals_a_day or failures_to_stop of the watch rules.",
    Why.NOT_KNOWN: "Correct the settings.",
}


def _step(remedy: str) -> str:
    return f"{remedy} Or resume it, or cancel it, with control_reassignment." if remedy else DECIDE


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
