"""The setting watch_rules: thresholds of findings, and limits of what Rehome starts by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from include.errors import InvalidRequestError
from include.field_descriptions import Described, Shown, Unit, ValueText, described
from include.setting_types import Days, SecondsOrNone
from include.watching.kinds import REMEDIED, FindingKind, WatchPolicy

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
    snapshots_to_open_by_kind: Annotated[
        Mapping[FindingKind, _Count],
        ValueText("object: kind of finding → whole number, at least 1"),
        Field(
            title="Snapshots to open some kinds",
            description="The same for kinds that need another number.",
            examples=[{"under_min_isr": 1}],
        ),
    ] = {
        FindingKind.DEAD_BROKER: 2,
        FindingKind.OFFLINE_LOG_DIR: 2,
        FindingKind.UNDER_MIN_ISR: 1,
        FindingKind.UNDER_REPLICATED: 2,
        FindingKind.WRONG_CLOCK: 1,
        FindingKind.FLAPPING_BROKER: 1,
    }
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
    count_tolerance: Annotated[
        float | None,
        ValueText("number from 0, or null"),
        Shown("none: numbers are not watched"),
        Field(
            ge=0,
            title="Imbalance of numbers",
            description="The same for numbers of replicas and of leaders; the share of leaders is "
            "the same for each broker. What cannot be divided is no finding: one replica or leader "
            "on top of half of this. Empty: they are not watched.",
            examples=[0.5],
        ),
    ] = None
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
    disk_days: Annotated[
        Days,
        Field(
            title="Days until a disk is full",
            description="A broker whose disks will be full within this many days is a finding. It "
            "alerts by itself only where this is more than the setting forecast_days: up to "
            "those, the alert disk_forecast covers it.",
        ),
    ] = 14
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
    slow_lag_fraction: Annotated[
        _Fraction,
        Field(
            title="Lag of slow brokers",
            description="A follower lags when it is behind its leader by more than "
            "slow_lag_messages. A broker or log dir is slow if more than this fraction of its "
            "followers lags, and less than half of that fraction on the others.",
        ),
    ] = 0.5
    slow_lag_messages: Annotated[
        int,
        Unit("messages"),
        Field(
            ge=1,
            title="Lag that counts",
            description="The fewest messages between a follower's log end offset and its leader's "
            "that count as lag. Both are read within one snapshot, but not at one moment.",
        ),
    ] = 1000
    slow_followers: Annotated[
        _Count,
        Field(
            title="Followers needed",
            description="A broker or log dir with fewer followers is not judged for slowness.",
        ),
    ] = 5
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
    failures_to_stop: Annotated[
        _Count,
        Field(
            title="Failures that stop healing",
            description="After this many failures within 24 hours nothing more is healed.",
        ),
    ] = 2

    dead_fraction_to_stop: Annotated[
        _Fraction,
        Field(
            title="Dead brokers that stop healing",
            description="While more than this fraction of the brokers is not alive, nothing is "
            "healed: a network or a rack has failed, and its brokers come back with their data.",
        ),
    ] = 0.4

    @field_validator("policies")
    @classmethod
    def _remedied(
        cls, policies: Mapping[FindingKind, WatchPolicy]
    ) -> Mapping[FindingKind, WatchPolicy]:
        """Only kinds that a plan can remedy may have a policy."""
        wrong = [
            kind
            for kind, policy in policies.items()
            if policy is not WatchPolicy.WATCH and kind not in REMEDIED
        ]
        if wrong:
            raise ValueError(f"no plan remedies {', '.join(wrong)}: they can only be watched")
        return policies

    def policy_of(self, kind: FindingKind, subject: str) -> WatchPolicy:
        """What follows when a finding opens. Uneven leaders are proposed at most: what evens them
        out undoes a demotion that a person may have meant.
        """
        if kind not in REMEDIED:
            return WatchPolicy.WATCH
        policy = self.policies.get(kind, self.policy)
        if policy is WatchPolicy.HEAL and (kind, subject) == (FindingKind.IMBALANCE, "leaders"):
            return WatchPolicy.PROPOSE
        return policy

    def opens_after(self, kind: FindingKind) -> int:
        """How many snapshots in a row must show it."""
        return self.snapshots_to_open_by_kind.get(kind, self.snapshots_to_open)

    @classmethod
    def parse(cls, given: Mapping[str, Any], where: str = "watch_rules") -> WatchRules:
        """The rules as a setting or a file has them; what is left out has its default.

        :raises InvalidRequestError: names every problem.
        """
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise InvalidRequestError(
                [
                    f"{where}: {'.'.join(map(str, each['loc']))}={each['input']!r}: {each['msg']}."
                    for each in error.errors(include_url=False)
                ],
                next_step=f"Correct {where}: docs/reference/settings.md names every rule.",
            ) from None


def rules_described() -> tuple[Described, ...]:
    """Every rule as data, for forms and documents."""
    return described(WatchRules)
