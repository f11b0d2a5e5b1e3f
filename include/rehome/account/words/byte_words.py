"""Bytes of a plan in words: what is in place, of how much, and why that has changed."""

from __future__ import annotations

from rehome.account.known import Known
from rehome.account.plan_bytes import Copying, PlanBytes
from rehome.account.words.unknown_words import WHY_UNKNOWN
from rehome.domain.text import bytes_text


def in_place_text(found: PlanBytes) -> str:
    """``91 MB of 97 MB are in place``; or why that is not known; or that there are none."""
    copying = found.copying
    if isinstance(copying, Known):
        whole = copying.value
        if not whole.total:
            return "there are no bytes to copy"
        return f"{bytes_text(whole.in_place)} of {bytes_text(whole.total)} are in place"
    return f"how many bytes the new replicas hold is not known: {WHY_UNKNOWN[copying.why]}"


def in_place_sentence(found: PlanBytes) -> str:
    """The same as a sentence."""
    return _sentence(in_place_text(found))


def left_sentence(found: PlanBytes) -> str:
    """``20 MB are left to copy.``"""
    if isinstance(found.copying, Known):
        if not found.copying.value.total:
            return _sentence(in_place_text(found))
        return f"{bytes_text(found.copying.value.left)} are left to copy."
    return _sentence(f"how much is left to copy is not known: {WHY_UNKNOWN[found.copying.why]}")


def total_text(found: PlanBytes) -> str:
    """What the total consists of: ``86 MB planned, 11 MB grown since``; "" = it is as planned, or
    not known.
    """
    if not isinstance(found.copying, Known):
        return ""
    changes = _changes(found, found.copying.value)
    return f"{bytes_text(found.planned)} planned{''.join(changes)}" if changes else ""


def _changes(found: PlanBytes, copying: Copying) -> list[str]:
    named = (
        (copying.grown, "grown since"),
        (copying.shrunk, "less than planned: topics have shrunk, or replicas were there already"),
        (found.dropped, "not copied: the moves have ended otherwise"),
    )
    return [f", {bytes_text(size)} {what}" for size, what in named if size]


def received_text(found: PlanBytes) -> str:
    """``98 MB received, 5 MB of it taken back``; "" = no more than is in place, or not known."""
    received, taken_back, copying = found.received, found.taken_back, found.copying
    if not isinstance(received, Known) or not received.value:
        return ""
    if isinstance(copying, Known) and received.value <= copying.value.in_place:
        return ""
    text = f"{bytes_text(received.value)} received"
    if isinstance(taken_back, Known) and taken_back.value:
        text += f", {bytes_text(taken_back.value)} of it taken back"
    return text


def bytes_sentence(found: PlanBytes) -> str:
    """All of it in one sentence, for notes, messages and reports."""
    text = in_place_text(found)
    total = total_text(found)
    parts = [f"{text} ({total})" if total else text, received_text(found)]
    return _sentence("; ".join(filter(None, parts)))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
