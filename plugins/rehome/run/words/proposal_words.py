"""What people are asked of what a run without a plan proposes, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome.domain.run.foreign.foreign_request import ForeignAction
from rehome.domain.text import bytes_text, count_text

if TYPE_CHECKING:
    from rehome.domain.request.partition_counts import AddedPartitions
    from rehome.execution.foreign.named import NamedReassignment, NamedReassignments

NAMED_IN_TEXT = 200
"""So many reassignments the question names; the file has all of them."""
FOREIGN_SUBJECT = "Act on reassignments of other clients?"
PARTITIONS_SUBJECT = "Approve the new partitions?"


def partitions_question(plan: AddedPartitions, report: str, again: str) -> str:
    """Topics, counts and configs; the brokers are in the report.

    :param again: why it is asked again; "" = it is not.
    """
    lines = [again, ""] if again else []
    for topic, total in plan.totals.items():
        new = topic in plan.new_topics
        has = count_text(total, "partition")
        lines.append(f"- {topic}: {has}{' (a new topic)' if new else ''}")
        configs = plan.new_topics.get(topic, {})
        lines += [f"    - {name} = {value}" for name, value in sorted(configs.items())]
    lines += [f"- report, with the brokers of each: {report}", f"- hash `{plan.plan_hash}`"]
    return "\n".join(lines)


def foreign_question(selection: NamedReassignments, file: str, again: str) -> str:
    """Each reassignment by name, and what is done with them.

    :param again: why it is asked again; "" = it is not.
    """
    lines = [again, ""] if again else []
    count = count_text(len(selection.reassignments), "reassignment")
    if selection.action is ForeignAction.ADOPT:
        rate = bytes_text(selection.rate_bytes_per_s or 0)
        lines.append(
            f"**Adopt** {count} of other clients on cluster {selection.cluster_id}: they become a "
            f"plan of Rehome, at {rate}/s for each broker and direction at most."
        )
    else:
        lines.append(f"**Cancel** {count} of other clients on cluster {selection.cluster_id}.")
        also = "are taken away" if selection.clean_throttles else "stay as they are"
        lines.append(f"Throttles of other clients that nothing in flight uses afterwards {also}.")
    lines.append("Rehome does not know who has started them. See that they know of it.")
    lines += ["", *(f"- {_line(each)}" for each in selection.reassignments[:NAMED_IN_TEXT])]
    if len(selection.reassignments) > NAMED_IN_TEXT:
        lines.append(f"- and {len(selection.reassignments) - NAMED_IN_TEXT} more, in the file")
    lines += ["", f"- all of them: {file}", f"- digest `{selection.digest}`"]
    return "\n".join(lines)


def _line(each: NamedReassignment) -> str:
    entry = each.entry
    return (
        f"{each.partition}: adds {list(entry.adding)}, removes {list(entry.removing)}, leads to "
        f"{list(entry.target)}"
    )


def approved_by_text(count: int, by: str) -> str:
    """The event of reassignments that a person has had cancelled."""
    return f"{count} named, approved by {by}"
