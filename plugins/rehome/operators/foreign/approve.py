"""Asks a person about reassignments of other clients, one by one named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehome.domain.run.foreign.foreign_request import ForeignAction
from rehome.domain.text import bytes_text, count_text
from rehome.operators.approval.without_plan import ApproveProposedOperator
from rehome.operators.foreign.asked import begun, proposed_by, required
from rehome.run import plan_ids

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.execution.foreign.named import NamedReassignment, NamedReassignments
    from rehome.operators.approval.without_plan import Proposed

NAMED_IN_TEXT = 200
"""So many reassignments the question names; the file has all of them."""


class ApproveForeignOperator(ApproveProposedOperator):
    """Waits for a person's approval, always, whatever the policy says: what is asked for is another
    client's. With the id ``approve``, after ``look``.

    The question names each reassignment, with what it adds, removes and leads to. The approval is a
    row of the ledger, bound to the digest of all of them, to the action and to its rate. Where the
    person rejects it, the tasks after this one are skipped.

    :raises NotDoneError: the ledger does not know what the run is about: `look` is not done.
    :raises PolicyError: the policy wants another person than the one who has asked for it.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(subject="Act on reassignments of other clients?", **kwargs)

    def proposed(self, context: Context) -> Proposed:
        """What the task `look` has named."""
        return proposed_by(required(context), plan_ids.plan_id_of(context))

    def has_begun(self, context: Context) -> bool:
        """Whether something was cancelled or adopted."""
        return begun(context)

    def needs_person(self, context: Context) -> bool:
        """Whatever the policy says."""
        return True

    def text(self, context: Context, file: str, again: str) -> str:
        """Each one by name, and what is done with them."""
        return question_text(required(context), file, again)


def question_text(asked: NamedReassignments, file: str, again: str) -> str:
    """The text of the request for approval, as Markdown."""
    lines = [again, ""] if again else []
    count = count_text(len(asked.reassignments), "reassignment")
    if asked.action is ForeignAction.ADOPT:
        rate = bytes_text(asked.rate_bytes_per_s or 0)
        lines.append(
            f"**Adopt** {count} of other clients on cluster {asked.cluster_id}: they become a plan "
            f"of Rehome, at {rate}/s for each broker and direction at most."
        )
    else:
        lines.append(f"**Cancel** {count} of other clients on cluster {asked.cluster_id}.")
        also = "are taken away" if asked.clean_throttles else "stay as they are"
        lines.append(f"Throttles of other clients that nothing in flight uses afterwards {also}.")
    lines.append("Rehome does not know who has started them. See that they know of it.")
    lines += ["", *(f"- {_line(each)}" for each in asked.reassignments[:NAMED_IN_TEXT])]
    if len(asked.reassignments) > NAMED_IN_TEXT:
        lines.append(f"- and {len(asked.reassignments) - NAMED_IN_TEXT} more, in the file")
    lines += ["", f"- all of them: {file}", f"- digest `{asked.digest}`"]
    return "\n".join(lines)


def _line(each: NamedReassignment) -> str:
    entry = each.entry
    return (
        f"{each.partition}: adds {list(entry.adding)}, removes {list(entry.removing)}, leads to "
        f"{list(entry.target)}"
    )
