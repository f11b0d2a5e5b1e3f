"""Asks a person about reassignments of other clients, one by one named."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rehome.domain.run.causes.cause import CauseKind
from rehome.domain.run.foreign.foreign_request import ForeignAction
from rehome.operators.approval.asking import ASKED_AGAIN, AskingOperator
from rehome.operators.foreign.asked import (
    NAMED_FILE,
    begun,
    refuse_rejected,
    required,
    terms_of,
)
from rehome.run import approval_terms, plan_ids, recorded_plans, run_params
from rehome.run.asking import hitl
from rehome.run.causes.recorded import tell_kind

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.execution.foreign.named import NamedReassignment, NamedReassignments

NAMED_IN_TEXT = 200
"""So many reassignments the question names; the file has all of them."""


class ApproveForeignOperator(AskingOperator):
    """Waits for a person's approval, always: what is asked for is another client's.

    The approval is bound to the digest of what was named, and is a row of the ledger.
    """

    ui_color = "#f3e2e9"

    def __init__(self, **kwargs: Any):
        asking = {"retries": ASKED_AGAIN, "retry_delay": timedelta(seconds=2)}
        super().__init__(subject="Act on reassignments of other clients?", **{**kwargs, **asking})

    def step(self, context: Context) -> Any:
        """Ask, and wait."""
        from rehome.domain.run.askers import Askers

        asked = required(context)
        if begun(context):
            return None
        refuse_rejected(plan_ids.plan_id_of(context))
        askers = Askers(run_params.actor_of(context))
        directory = recorded_plans.plan_directory(context)
        return self.ask(
            *(context, terms_of(asked), asked.digest, askers, asked.cluster_id),
            body=question_text(asked, f"{directory.uri}/{NAMED_FILE}", self.asked_before(context)),
            other=[self.REJECT],
            files={NAMED_FILE: directory.digest(NAMED_FILE)},
        )

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Record who decided what. Of the event, only what Airflow itself has recorded counts."""
        from rehome.domain.run.approval.questions import AnswerKind
        from rehome.domain.run.askers import Askers
        from rehome.execution.access.connection_policy import PolicyError

        answer = hitl.answer_in(event)
        open_one = self.open_question(context, answer)
        if answer.option == self.REJECT:
            self.record(open_one, answer, AnswerKind.REJECTED)
            text = f"{plan_ids.plan_id_of(context)} was rejected by {answer.by}"
            tell_kind(context, CauseKind.REJECTED, text, "Nothing was changed.")
            self.options = [self.APPROVE, self.REJECT]
            return super().execute_complete(context, event)
        if not self.approves(context, open_one, answer) or answer.by is None:
            self.ask_again(context, open_one, answer, "it names no option that there was.")
        try:
            now_asked = Askers(run_params.actor_of(context))
            askers = open_one.question.askers
            approval_terms.refuse_own_approval(context, answer.by, askers, now_asked)
        except PolicyError as error:
            self.record(open_one, answer, AnswerKind.NOT_COUNTED, error.what)
            raise
        if terms_of(required(context)) != open_one.question.terms:
            self.ask_again(context, open_one, answer, "something else is named by now.")
        self.record(open_one, answer, AnswerKind.APPROVED)
        self.log.info("%s approved by %s", plan_ids.plan_id_of(context), answer.by)
        return None


def question_text(asked: NamedReassignments, file: str, again: str) -> str:
    """The text of the request for approval, as Markdown."""
    from rehome.domain.text import bytes_text, count_text

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
