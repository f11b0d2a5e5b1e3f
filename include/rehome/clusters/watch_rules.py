"""The setting watch_rules: thresholds of findings, and limits of what Rehome starts by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    field_validator,
)

from rehome.domain.run.watched.finding_kinds import REMEDIED, FindingKind, WatchPolicy
from rehome.errors import InvalidRequestError
from rehome.field_descriptions import Shown, Unit, ValueText
from rehome.setting_types import SecondsOrNone

REMOVED: Mapping[str, str] = {
    "snapshots_to_open_by_kind": "snapshots_to_open, and grace_s",
    "count_tolerance": "balance_tolerance and traffic_tolerance: numbers are not watched",
    "disk_days": "the setting forecast_days",
    "slow_lag_fraction": "nothing: it is half of the followers",
    "slow_lag_messages": "nothing: it is 1,000 messages",
    "slow_followers": "nothing: it is 5 followers",
    "failures_to_stop": "heals_a_day: what fails is tried again after a wait",
    "dead_fraction_to_stop": "racks of brokers; without them it is 0.4",
}
"""Rules of earlier versions, which this one accepts and ignores, and what holds instead."""

_OPENS_SOONER = {
    FindingKind.DEAD_BROKER: 2,
    FindingKind.OFFLINE_LOG_DIR: 2,
    FindingKind.UNDER_MIN_ISR: 1,
    FindingKind.UNDER_REPLICATED: 2,
    FindingKind.WRONG_CLOCK: 1,
    FindingKind.FLAPPING_BROKER: 1,
    FindingKind.REMOVED_RULE: 1,
}
"""Snapshots in a row, where that is fewer than for others."""

_KINDS = ", ".join(FindingKind)
_Fraction = Annotated[float, Field(ge=0, le=1)]
_Count = Annotated[int, Field(ge=1)]


class WatchRules(BaseModel):
    """When findings open and close, and how far Rehome may go by itself. Each field says which."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    policy: Annotated[
        WatchPolicy,
        Field(
            title="Policy",
            description="What follows when a finding opens: watch alerts people, propose also "
            "makes a plan and asks for its approval, heal carries it out.",
        ),
    ] = WatchPolicy.WATCH
    policies: Annotated[
        Mapping[FindingKind, WatchPolicy],
        ValueText("object: kind of finding → watch, propose or heal"),
        Shown("none"),
        Field(
            title="Policies of some kinds",
            description="The policy of kinds that do not follow the general one. Kinds are: "
            f"{_KINDS}.",
            examples=[{"dead_broker": "heal", "empty_broker": "propose"}],
        ),
    ] = {}
    snapshots_to_open: Annotated[
        _Count,
        Field(
            title="Snapshots to open",
            description="A finding opens when this many snapshots in a row show it.",
        ),
    ] = 3
    snapshots_to_close: Annotated[
        _Count,
        Field(
            title="Snapshots to close",
            description="A finding closes when this many snapshots in a row do not show it.",
        ),
    ] = 3
    grace_s: Annotated[
        SecondsOrNone,
        Field(
            title="Grace time",
            description="Dead brokers, offline log dirs and under-replicated partitions are a "
            "finding only if they last longer than this: a restart is no finding.",
        ),
    ] = 1800.0
    balance_tolerance: Annotated[
        _Fraction,
        Field(
            title="Imbalance",
            description="A broker whose bytes on disk are further off its share is a finding; "
            "0.2 is 20 %. Shares go by the brokers' capacity, where all of them report it.",
        ),
    ] = 0.2
    traffic_tolerance: Annotated[
        float | None,
        ValueText("number from 0, or null"),
        Field(
            ge=0,
            title="Imbalance of traffic",
            description="The same for bytes in and bytes out per second, if the load history has "
            "them. null: traffic is not watched.",
        ),
    ] = 0.5
    leader_skew_fraction: Annotated[
        _Fraction,
        Field(
            title="Leader skew",
            description="A finding opens if more than this fraction of all partitions is led by "
            "another broker than the preferred leader, and that one is in sync.",
        ),
    ] = 0.1
    replication_factors: Annotated[
        Mapping[str, _Count],
        ValueText("object: pattern of topics → replication factor"),
        Shown("none"),
        Field(
            title="Declared replication factors",
            description="Names of topics, or patterns with * and ?, and the replication factor "
            "that they should have. The first match applies. Internal topics need their full "
            "name.",
            examples=[{"orders": 3, "logs-*": 2}],
        ),
    ] = {}
    approval_s: Annotated[
        SecondsOrNone,
        Field(
            gt=0,
            title="Approval deadline",
            description="A proposal without an answer ends after this time, and is made again "
            "when its finding opens again.",
        ),
    ] = 24 * 3600.0
    largest_throttle: Annotated[
        int,
        Unit("bytes per second"),
        Field(
            gt=0,
            title="Largest throttle",
            description="The most that a plan made by watching copies, for each broker and "
            "direction. The connection's policy may allow less.",
        ),
    ] = 50_000_000
    budget_bytes: Annotated[
        int | None,
        Unit("bytes"),
        ValueText("whole number, more than 0, or null"),
        Shown("none: any number of bytes"),
        Field(
            gt=0,
            title="Budget",
            description="The most bytes that a plan made by watching copies. Repairs take the "
            "most endangered partitions first. The next plan continues with the rest.",
            examples=[500_000_000_000],
        ),
    ] = None
    heals_a_day: Annotated[
        _Count,
        Field(
            title="Heals a day",
            description="After this many starts within 24 hours nothing more is healed.",
        ),
    ] = 3
    _removed: tuple[str, ...] = PrivateAttr(())

    @field_validator("policies")
    @classmethod
    def _only_remedied(
        cls, policies: Mapping[FindingKind, WatchPolicy]
    ) -> Mapping[FindingKind, WatchPolicy]:
        """Only kinds that a plan can remedy may have a policy."""
        wrong = [
            kind
            for kind, policy in policies.items()
            if policy is not WatchPolicy.WATCH and kind not in REMEDIED
        ]
        if wrong:
            raise ValueError(
                f"the policy of {', '.join(wrong)} can only be watch: Rehome has no plan against it"
            )
        return policies

    def policy_of(self, kind: FindingKind) -> WatchPolicy:
        """What follows when a finding opens."""
        return self.policies.get(kind, self.policy) if kind in REMEDIED else WatchPolicy.WATCH

    def opens_after(self, kind: FindingKind) -> int:
        """How many snapshots in a row must show it."""
        return min(self.snapshots_to_open, _OPENS_SOONER.get(kind, self.snapshots_to_open))

    @property
    def removed(self) -> tuple[str, ...]:
        """Rules that were given, and that this version ignores."""
        return self._removed

    @classmethod
    def parse(cls, given: Mapping[str, Any], where: str = "watch_rules") -> WatchRules:
        """The rules as a setting or a file has them; what is left out has its default.

        :raises InvalidRequestError: names every problem.
        """
        try:
            rules = cls.model_validate({n: v for n, v in given.items() if n not in REMOVED})
            rules._removed = tuple(sorted(REMOVED.keys() & given.keys()))
            return rules
        except ValidationError as error:
            raise InvalidRequestError(
                [
                    f"{where}: {'.'.join(map(str, each['loc']))}={each['input']!r}: {each['msg']}."
                    for each in error.errors(include_url=False)
                ],
                next_step=f"Correct {where}: docs/reference/settings.md names every rule.",
            ) from None
