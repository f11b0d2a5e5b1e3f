"""The text of the request for approval."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from rehome.account.findings import findings_of
from rehome.account.words.finding_words import counted_text, group_line
from rehome.domain.text import bytes_text, count_text
from rehome.domain.time_range import TimeRange
from rehome.execution.control.approval import Lapse, changed_settings, changed_terms
from rehome.execution.control.words.approval_words import reason_of

if TYPE_CHECKING:
    from rehome.account.findings import Gates
    from rehome.domain.plan.summary import PlanSummary
    from rehome.domain.run.approval_terms import Terms
    from rehome.domain.run.askers import Askers
    from rehome.domain.run.findings import FindingGroup

BODY = """
{sent_back}\
**[{summary.plan_id}]({page})** is ready.

| {what} | |
|---|---|
| partitions | {summary.partitions} |
| replicas to copy | {summary.replica_moves} |
| changes of leader | {summary.leader_changes} |
| to move | {bytes_to_move}; no plan that ends the same moves less than {lower_bound} |
{within_brokers}\
| time | {duration} {pace} |
{weakened}\
| findings | {findings} |
| asked for by | {asked_by} |

{found}Its page has the plan, the report and every finding: [open it]({page}).

The approval holds for exactly this:

{terms}

It lapses {lasting} after it was given, and when any of this, or a partition of the plan, has
changed before the plan starts. A run that resumes the plan under other terms asks anew.

*Send back* tries the plan out with another throttle, such as `20 MB/s`, and asks again.
"""


def approval_text(
    summary: PlanSummary,
    what: str,
    terms: Terms,
    page: str,
    askers: Askers,
    *,
    lasting_s: float,
    tried: Mapping[str, Any],
    gates: Gates = (),
    sent_back: str = "",
) -> str:
    """The text of the request for approval, as Markdown.

    :param what: the plan's title: ``Drain broker 4``.
    :param page: the address of the plan's page.
    :param askers: who has asked for it.
    :param tried: dry_run.json; ``gates``: gates.json.
    :param sent_back: what has come of an earlier answer.
    """
    predicted, findings = tried.get("predicted"), findings_of(tried, gates)
    return BODY.format(
        sent_back=f"{sent_back}\n\n" if sent_back else "",
        summary=summary,
        what=what,
        bytes_to_move=bytes_text(summary.bytes_to_move),
        lower_bound=bytes_text(summary.lower_bound_bytes),
        duration=str(TimeRange(**predicted)) if predicted else "it would never end",
        pace=_pace(terms, tried.get("rate_cause")),
        page=page,
        findings=counted_text(findings) or "none",
        found=_lines(findings),
        asked_by=", ".join(f"{who} ({' and '.join(what)})" for who, what in askers.what.items()),
        within_brokers=_within_brokers(summary),
        weakened="".join(f"| **weakens** | {item} |\n" for item in summary.weakened),
        terms="\n".join(f"- {line}" for line in terms.lines()),
        lasting=f"{lasting_s / 3600:g} h",
    )


def _pace(terms: Terms, cause: str | None) -> str:
    rate = f"{bytes_text(terms.rate_bytes_per_s)}/s per broker and direction"
    if terms.unthrottled is not None:
        return f"**without a throttle**, if brokers copy {rate}"
    return f"at {rate}" + (f" (auto: {cause})" if cause else "")


def _within_brokers(summary: PlanSummary) -> str:
    """The line on moves between log dirs; empty where there are none."""
    if not summary.log_dir_moves:
        return ""
    replicas = count_text(summary.log_dir_moves, "replica")
    move = "moves" if summary.log_dir_moves == 1 else "move"
    size = bytes_text(summary.log_dir_bytes)
    return (
        f"| between log dirs | {replicas} ({size}) {move} between log dirs "
        "of the brokers they are on, not over the network |\n"
    )


def _lines(groups: Collection[FindingGroup]) -> str:
    """A line for each kind of findings; brokers may have worded them, so Markdown reads none."""
    lines = "".join(f"- `{plain(' '.join(group_line(group).split()))}`\n" for group in groups)
    return f"{lines}\n" if lines else ""


def not_the_same(terms_shown: Terms, now: Terms) -> str:
    """What has changed while a person decided, in words; "" = nothing."""
    reasons = []
    for lapse in changed_terms(terms_shown, now):
        if lapse is Lapse.SETTINGS:
            reasons += [f"`{plain(str(change))}`" for change in changed_settings(terms_shown, now)]
        elif lapse is Lapse.RATE:
            reasons.append("another throttle was asked for")
        else:
            reasons.append(plain(reason_of(lapse, terms_shown, now)))
    return "; ".join(reasons)


def plain(text: str) -> str:
    """Without what Markdown reads as code."""
    return text.replace("`", "'")
