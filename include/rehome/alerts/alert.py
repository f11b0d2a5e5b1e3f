"""One thing that people are to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from rehome.alerts.catalog import entry_of
from rehome.alerts.kinds import AlertKind
from rehome.domain.run.findings import Severity
from rehome.ledger.base.alert_records import RaisedAlert
from rehome.ledger.base.records import PlanRecord


@dataclass(frozen=True, slots=True)
class Alert:
    """What the page shows, and what is sent through channels.

    :param subject: the plan, cluster or run that it is about: of one subject and kind there is one
        alert at a time.
    :param text: what it is; what is not known is said.
    :param next_step: what a person should do, or what happens if no one does anything.
    :param state: of the plan; "" = it is about none.
    :param connection: that the cluster is reached through; "" = not known.
    :param occurrence: what makes one of the same subject another one, such as a run's attempt.
    :param page: address of the page of the plan or cluster; "" = there is none.
    :param report: address of the report; "" = there is none.
    :param graded: how bad this one is; None = as bad as its kind.
    :param facts: more of it, for programs.
    :param message_id: of the message; "" = it is not sent yet.
    """

    kind: AlertKind
    subject: str
    text: str
    next_step: str = ""
    plan_id: str = ""
    cluster_id: str = ""
    connection: str = ""
    state: str = ""
    occurrence: str = ""
    page: str = ""
    report: str = ""
    graded: Severity | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    message_id: str = ""

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.graded or entry_of(self.kind).severity

    @property
    def runbook(self) -> str:
        """The page of the handbook that says what to do."""
        return entry_of(self.kind).runbook

    @property
    def key(self) -> tuple[AlertKind, str]:
        """What there is one of at a time."""
        return self.kind, self.subject

    def to_raise(self, alert_again_s: float) -> RaisedAlert:
        """As the ledger takes it."""
        return RaisedAlert(
            self.kind,
            self.subject,
            self.occurrence,
            self.plan_id or None,
            self.cluster_id or None,
            entry_of(self.kind).again_s(alert_again_s),
            self.to_json(),
        )

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Alert:
        """The reverse; what another version of Rehome has added is left out."""
        names = {each.name for each in fields(cls)}
        values = {name: value for name, value in data.items() if name in names}
        graded = values.get("graded")
        own = {"kind": AlertKind(data["kind"]), "graded": graded and Severity(graded)}
        return cls(**{**values, **own})


def about_plan(record: PlanRecord) -> dict[str, Any]:
    """What every alert about a plan names."""
    return {
        "subject": record.plan_id,
        "plan_id": record.plan_id,
        "cluster_id": record.cluster_id,
        "connection": record.planned_through or "",
        "state": record.state.value,
        "facts": {"run_id": record.run_id, "dag_id": record.dag_id, "cause": record.cause},
    }
