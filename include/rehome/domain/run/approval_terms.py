"""What an approval is of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates
from rehome.domain.request.request import OnWindowEnd, ReassignmentRequest
from rehome.domain.run.approval.effects import Effects
from rehome.domain.run.askers import Term
from rehome.domain.text import bytes_text, count_text, second_text

_FREE = "without a throttle"
_SETTINGS = "with the caps, broker sets and targets that the cluster has now"

NOBODY = "the run's own parameters"
"""By what a plan is approved where no person has to."""


@dataclass(frozen=True, slots=True)
class Person:
    """A user as Airflow has authenticated them.

    :param id: Airflow's own; ``name``: what they log in with. Some auth managers have one for both.
    """

    id: str
    name: str

    @property
    def names(self) -> frozenset[str]:
        """All that others may know them by."""
        return frozenset(filter(None, (self.id, self.name)))

    def __str__(self) -> str:
        same = self.id in ("", self.name)
        return self.name if same else f"{self.name or 'a user'} (id {self.id})"


@dataclass(frozen=True, slots=True)
class Terms:
    """Exactly what is approved.

    :param plan_hash: of the plan (:mod:`rehome.domain.plan.plan_hash`).
    :param rate_bytes_per_s: what brokers are to deliver at most, each and in each direction.
    :param window_end: aware UTC time at which nothing may be in flight; None = no window.
    :param on_window_end: what becomes of copies that the window's end finds in flight.
    :param additional: whether it may run at the same time as other clients' reassignments.
    :param unthrottled: at how many moves at once, per broker and direction, it runs without a
        throttle: nothing else limits it. The rate is then what brokers can take in, for the
        prediction. None = it is throttled.
    :param least_rate_bytes_per_s: below which partitions that suffer do not bring the throttle; 0 =
        a tenth of what is asked for. None = an earlier Rehome did not record it.
    :param rates_by_broker: the same of brokers that have one of their own.
    :param new_replicas_at_once: of a partition at most; None = as many as it gets.
    :param settings: the cluster's caps, broker sets and targets that count for the plan
        (``ClusterValues.counting``). None = they are not known, and not compared.
    :param effects: what else it does; ``evidence``: name of each file that the request for approval
        is made from → SHA-256 of its bytes. None = an earlier Rehome did not record it.
    """

    plan_hash: str
    rate_bytes_per_s: int
    window_end: datetime | None = None
    on_window_end: OnWindowEnd = OnWindowEnd.FINISH
    additional: bool = False
    unthrottled: int | None = None
    settings: Mapping[str, Any] | None = None
    effects: Effects | None = None
    evidence: Mapping[str, str] | None = None
    least_rate_bytes_per_s: int | None = None
    rates_by_broker: BrokerRates = NO_OWN_RATES
    new_replicas_at_once: int | None = None

    @classmethod
    def of(
        cls,
        plan_hash: str,
        rate_bytes_per_s: int,
        request: ReassignmentRequest,
        settings: Mapping[str, Any] | None = None,
        effects: Effects | None = None,
        evidence: Mapping[str, str] | None = None,
        rates_by_broker: BrokerRates | None = None,
    ) -> Terms:
        """What a run with these parameters carries out at this rate.

        :param rates_by_broker: None = as the request says.
        """
        own = request.own_rates(rate_bytes_per_s) if rates_by_broker is None else rates_by_broker
        return cls(
            plan_hash,
            rate_bytes_per_s,
            request.window_end,
            request.on_window_end,
            request.additional,
            request.max_moves_per_broker if request.unthrottled else None,
            settings,
            effects,
            evidence,
            0 if request.unthrottled else request.throttle_min or 0,
            own,
            request.max_new_replicas_at_once,
        )

    @property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        content = json.dumps(self.to_json(), sort_keys=True, default=str)
        return hashlib.sha256(content.encode()).hexdigest()

    def lines(self) -> tuple[str, ...]:
        """In words, for a person."""
        settings = () if self.settings is None else (_SETTINGS,)
        return (
            f"plan with the hash {self.plan_hash}",
            self.pace.replace(_FREE, f"**{_FREE}**"),
            *self.rates_by_broker.lines(),
            *((self.least,) if self.least_rate_bytes_per_s else ()),
            self.window,
            self.others,
            *((self.steps,) if self.new_replicas_at_once else ()),
            *(() if self.effects is None else self.effects.lines()),
            *settings,
            *(() if not self.evidence else (f"with what is shown here of {self._shown}",)),
        )

    @property
    def _shown(self) -> str:
        return ", ".join(f"{name} ({digest[:8]})" for name, digest in (self.evidence or {}).items())

    @property
    def pace(self) -> str:
        """How fast it may run, in words that follow "it would run"."""
        if self.unthrottled is not None:
            return (
                f"{_FREE}: {count_text(self.unthrottled, 'move')} at once for each broker and "
                "direction at most, and nothing else, limit the copies"
            )
        return (
            f"at {bytes_text(self.rate_bytes_per_s)}/s ({self.rate_bytes_per_s} bytes per second) "
            "for each broker and direction at most"
        )

    @property
    def by_broker(self) -> str:
        """The throttles of single brokers, in words."""
        return "; ".join(self.rates_by_broker.lines()) or "no broker has a throttle of its own"

    @property
    def least(self) -> str:
        """How far the throttle is lowered where partitions suffer, in words."""
        least = self.least_rate_bytes_per_s
        if least is None:
            return "how far the throttle is lowered where partitions suffer was not recorded"
        if not least:
            return "where partitions suffer, the throttle is lowered, down to a tenth of it"
        return f"where partitions suffer, the throttle is not lowered below {bytes_text(least)}/s"

    @property
    def others(self) -> str:
        """Whether others may move partitions meanwhile, in words."""
        others = "while other clients reassign partitions"
        return f"also {others}" if self.additional else f"not {others}"

    @property
    def steps(self) -> str:
        """How many new replicas a partition gets at once, in words."""
        if self.new_replicas_at_once is None:
            return "all new replicas of a partition at once"
        most = count_text(self.new_replicas_at_once, "new replica")
        return f"at most {most} of a partition at once; until the last one it keeps its old ones"

    @property
    def window(self) -> str:
        """Until when it runs, in words."""
        if self.window_end is None:
            return "without a window: until it has ended"
        ends = f"until {second_text(self.window_end)}"
        if self.on_window_end is OnWindowEnd.CANCEL:
            return f"{ends}, when what is in flight is cancelled"
        return f"{ends}, when nothing is in flight any more"

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types; :meth:`from_json` reads it back."""
        return {
            "plan_hash": self.plan_hash,
            "rate_bytes_per_s": self.rate_bytes_per_s,
            "window_end": None if self.window_end is None else self.window_end.isoformat(),
            "on_window_end": self.on_window_end.value,
            "additional": self.additional,
            "unthrottled": self.unthrottled,
            "settings": self.settings,
            "effects": None if self.effects is None else self.effects.to_json(),
            "evidence": None if self.evidence is None else dict(self.evidence),
            "least_rate_bytes_per_s": self.least_rate_bytes_per_s,
            **({"rates_by_broker": own} if (own := self.rates_by_broker.to_json()) else {}),
            **({"new_replicas_at_once": most} if (most := self.new_replicas_at_once) else {}),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Terms:
        """The inverse of :meth:`to_json`."""
        end, effects = content["window_end"], content.get("effects")
        return cls(
            content["plan_hash"],
            content["rate_bytes_per_s"],
            None if end is None else datetime.fromisoformat(end),
            OnWindowEnd(content["on_window_end"]),
            content["additional"],
            content.get("unthrottled"),  # an earlier Rehome throttled everything
            content.get("settings"),  # an earlier Rehome did not know, nor the next three
            None if effects is None else Effects.from_json(effects),
            content.get("evidence"),
            content.get("least_rate_bytes_per_s"),
            BrokerRates.from_json(content.get("rates_by_broker")),
            content.get("new_replicas_at_once"),
        )


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval as the ledger keeps it.

    :param by: the person who gave it; "" = no person was asked: the run's parameters give it.
    :param asked_by: who triggered the run that asked; None = it is not known.
    :param terms_asked_by: who had asked for a term that was not the plan's own.
    :param at, expires_at: aware UTC times. A plan may start, or go on in another run, between.
    :param by_id: Airflow's id of that person; ``question_id``: the ledger's question that was
        answered with it. None = no person was asked, or an earlier Rehome recorded it.
    """

    terms: Terms
    by: str
    by_person: bool
    at: datetime
    expires_at: datetime
    asked_by: str | None = None
    terms_asked_by: Mapping[Term, str] = field(default_factory=dict)
    by_id: str | None = None
    question_id: int | None = None

    @property
    def by_whom(self) -> str:
        """In words."""
        return str(self.person) if self.by_person else NOBODY

    @property
    def person(self) -> Person | None:
        """Who has given it; None = no person was asked."""
        return Person(self.by_id or "", self.by) if self.by_person else None

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types; :meth:`from_json` reads it back."""
        return {
            **self.terms.to_json(),
            "by": self.by,
            "by_person": self.by_person,
            "at": self.at.isoformat(),
            "expires_at": self.expires_at.isoformat(),
            "asked_by": self.asked_by,
            "terms_asked_by": dict(self.terms_asked_by),
            "by_id": self.by_id,
            "question_id": self.question_id,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Approval:
        """The inverse of :meth:`to_json`."""
        at, expires_at = (datetime.fromisoformat(content[name]) for name in ("at", "expires_at"))
        terms = Terms.from_json(content)
        asked_by = content.get("asked_by")  # an earlier Rehome did not record it, nor the next
        others = {Term(term): who for term, who in content.get("terms_asked_by", {}).items()}
        by_person = content["by_person"]
        return cls(
            terms,
            content["by"] if by_person else "",  # an earlier Rehome named who triggered the run
            by_person,
            at,
            expires_at,
            asked_by,
            others,
            content.get("by_id"),
            content.get("question_id"),
        )
