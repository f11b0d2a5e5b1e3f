"""What is so at the end of a plan, in words: drained brokers and leaders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rehome.domain.text import brokers_text, count_text, join_names
from rehome.execution.completion.drained import Drained, LeftOver
from rehome.execution.completion.follow_up import NoFollowUp
from rehome.execution.completion.preferred_leaders import RestoredLeaders

_SHOWN = 20

NOT_FOLLOWED_UP: Mapping[NoFollowUp, str] = {
    NoFollowUp.UNREAD: "what lies there could not be read",
    NoFollowUp.ONLY_ON_DISK: "nothing of it is a replica that could be moved",
    NoFollowUp.WINDOW: "the window has ended",
    NoFollowUp.BUDGET: "the budget is spent",
    NoFollowUp.SECOND: "it appeared while the follow-up ran",
}
"""As drained.json has it, too."""


def drained_text(reading: Drained) -> str:
    """A sentence, and a line for each of the first replicas found."""
    emptied = reading.log_dirs or reading.brokers
    where = _log_dirs(reading.log_dirs) if reading.log_dirs else brokers_text(reading.brokers)
    are = "is" if len(emptied) == 1 else "are"
    verdict = "not empty" if reading.left or reading.unpaid else "empty"
    if reading.unproved and not reading.left:
        verdict = "not proved to be empty"
    said = f"{_capitalize(where)} {are} {verdict}."
    lines = [said if emptied else "No log dir was to be emptied."]
    then = "what lies there is not known" if reading.log_dirs else "only metadata was read"
    lines += _list_lines("What ought not to be there:", reading.left)
    lines += _list_lines(
        "What the plan has left there because its budget was spent:", reading.unpaid
    )
    lines += [
        f"Broker {broker}: its log dirs could not be read ({why}); {then}."
        for broker, why in sorted(reading.unread.items())
    ]
    return "\n".join(lines)


def _log_dirs(names: Sequence[Any]) -> str:
    return f"log {'dir' if len(names) == 1 else 'dirs'} {join_names([str(name) for name in names])}"


def _capitalize(text: str) -> str:
    """At the beginning of a sentence."""
    return f"{text[0].upper()}{text[1:]}"


def _list_lines(head: str, items: Sequence[LeftOver]) -> list[str]:
    lines = [head, *(f"  {item}" for item in items[:_SHOWN])] if items else []
    return [*lines, f"  and {len(items) - _SHOWN} more"] if len(items) > _SHOWN else lines


def still_there(content: Mapping[str, Any]) -> str:
    """The text of drained.json."""
    left = [
        f"{item['topic']}-{item['partition']} on broker {item['broker']} ({item['where']})"
        for item in content["left"]
    ]
    dirs = content.get("log_dirs")
    where = f"in {_log_dirs(dirs)}" if dirs else f"on {brokers_text(content['brokers'])}"
    if not left:
        unread = "; ".join(f"broker {b}: {why}" for b, why in content["unread"].items())
        return f"What lies {where} is not known: {unread}."
    more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
    return f"{count_text(len(left), 'replica')} {where}: {', '.join(left[:_SHOWN])}{more}."


def not_ended(content: Mapping[str, Any], why: str) -> str:
    """Why a run fails whose plan is done, but not what it was to empty; from drained.json.

    :param why: why nothing was moved away; "" = no plan could be made for it.
    """
    verdict, reason = "not empty", f"Why it is still there: {why or 'no plan could be made for it'}"
    if not content["left"]:
        verdict, reason = "not proved to be empty", f"Why: {why or 'it could not be read'}"
    return (
        f"The plan is done, but what it was to empty is {verdict}. {still_there(content)}\n"
        f"{reason}. Do not remove what is named here. Trigger a new run of the action."
    )


def demotion_text(content: Mapping[str, Any]) -> str:
    """The text of demoted.json, for a log."""
    who, one = _capitalize(brokers_text(content["brokers"])), len(content["brokers"]) == 1
    lead, are = ("leads", "is") if one else ("lead", "are")
    lines = [f"{who} {lead} nothing that others could lead."]
    if content["led"]:
        lines = [f"{who} still {lead}, or {are} preferred for: {_some(content['led'])}."]
    if content["alone"]:
        lines.append(f"No other broker has a replica in sync of: {_some(content['alone'])}.")
    return " ".join(lines)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def restored_text(leaders: RestoredLeaders) -> str:
    """One line, and one for each refusal."""
    lines = [
        f"Preferred replicas: {leaders.already} led already, {len(leaders.elected)} elected, "
        f"{len(leaders.waiting)} not in the ISR, {len(leaders.unread)} could not be read"
    ]
    return "\n".join([*lines, *(f"  {tp}: {error}" for tp, error in leaders.refused.items())])


def not_elected_text(content: Mapping[str, Any]) -> str:
    """Of leaders.json: the first partitions whose preferred leader does not lead, each with why."""
    unelected = [f"{name}: {error}" for name, error in content["refused"].items()]
    unelected += [f"{name}: its preferred leader is not in sync" for name in content["waiting"]]
    unelected += [f"{name}: who leads it is not known" for name in content.get("unread", ())]
    more = f"; and {len(unelected) - _SHOWN} more" if len(unelected) > _SHOWN else ""
    return "; ".join(unelected[:_SHOWN]) + more
