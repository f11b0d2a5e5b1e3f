"""The form "plan a move": what people write in it, as parameters of `reassign_partitions`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rehome.domain.actions import ACTION_FACTS, Action, words
from rehome.domain.request.param_maps import replacements
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.topic_filters import filters_in
from rehome.domain.text import rate_in
from rehome.errors import InvalidRequestError

NOT_OFFERED = (Action.REASSIGN, Action.ROLLBACK)
"""What takes a file, or another plan."""
CHOICES = {a: facts.about for a, facts in ACTION_FACTS.items() if a not in NOT_OFFERED}
"""Actions that the form offers, a line each."""
ACTION_WORDS = {action: words(action) for action in CHOICES}


@dataclass(frozen=True, slots=True)
class PlanForm:
    """The fields as they were written; empty = not given.

    :param tolerance: in percent; ``budget``: the most bytes to copy, such as 500 GB.
    :param replacements: such as ``3=7, 4=8``; ``log_dirs``: such as ``3:/data/1 4:/data/1``.
    """

    action: str = Action.DRAIN.value
    brokers: tuple[str, ...] = ()
    topics: str = ""
    replication_factor: str = ""
    throttle: str = ""
    tolerance: str = ""
    budget: str = ""
    approval: bool = True
    replacements: str = ""
    log_dirs: str = ""

    @property
    def topic_names(self) -> tuple[str, ...]:
        """Names and patterns of topics; none = all."""
        return filters_in(self.topics)

    def params(self) -> dict[str, Any]:
        """Parameters for a dry run.

        :raises InvalidRequestError: lists every problem.
        """
        problems: list[str] = []

        def size(text: str, what: str, example: str) -> int | None:
            rate = rate_in(text) if text.strip() else None
            if rate is None and text.strip():
                problems.append(f"{what} {text} is not understood: write {example}.")
            return rate

        throttle = self.throttle.strip()
        params: dict[str, Any] = {
            "action": self.action,
            "brokers": [int(b) if b.isdecimal() else b for b in self.brokers],
            "topics": list(self.topic_names),
            "throttle": "auto"
            if throttle in ("", "auto")
            else size(throttle, "Throttle", "50 MB/s, or auto"),
            **({"log_dirs": self.log_dirs.split()} if self.log_dirs.strip() else {}),
            "approval": self.approval,
            "dry_run": True,
        }
        if (budget := size(self.budget, "Budget", "500 GB")) is not None:
            params["budget_bytes"] = budget
        params |= self._filled_fields("replication_factor", "replacements")
        if self.tolerance.strip():
            try:
                params["tolerance"] = float(self.tolerance.strip().rstrip("%").strip()) / 100
            except ValueError:
                problems.append(f"Tolerance {self.tolerance} is not understood: write 2 %.")
        try:
            parse_request(params)
        except InvalidRequestError as error:
            problems += error.problems
        if problems:
            raise InvalidRequestError(problems)
        return _as_json(params)

    def _filled_fields(self, *names: str) -> dict[str, Any]:
        """Those of the fields that are not empty."""
        written = {name: getattr(self, name).strip() for name in names}
        return {name: text for name, text in written.items() if text}


def _as_json(params: dict[str, Any]) -> dict[str, Any]:
    """What the DAG takes, of texts that have been found good."""
    if "replication_factor" in params:
        params["replication_factor"] = int(params["replication_factor"])
    if "replacements" in params:
        pairs = replacements(params["replacements"])
        params["replacements"] = {str(old): new for old, new in pairs.items()}
    return params
