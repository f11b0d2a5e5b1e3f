"""Asks a person about reassignments of other clients, one by one named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehome.operators.approval.without_plan import ApproveProposedOperator
from rehome.operators.foreign.asked import has_begun, proposed_by, require_named
from rehome.run.words.proposal_words import FOREIGN_SUBJECT, foreign_question

if TYPE_CHECKING:
    from rehome.operators.approval.without_plan import Proposed
    from rehome.run.context import RunContext


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
        super().__init__(subject=FOREIGN_SUBJECT, **kwargs)

    def proposal(self, context: RunContext) -> Proposed:
        """What the task `look` has named."""
        return proposed_by(require_named(context), context.plan_id)

    def has_begun(self, context: RunContext) -> bool:
        """Whether something was cancelled or adopted."""
        return has_begun(context)

    def needs_person(self, context: RunContext) -> bool:
        """Whatever the policy says."""
        return True

    def text(self, context: RunContext, file: str, again: str) -> str:
        """Each one by name, and what is done with them."""
        return foreign_question(require_named(context), file, again)
