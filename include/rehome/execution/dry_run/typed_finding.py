"""What a dry run can find: kinds and values, before they are put into words."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

from rehome.domain.kafka import BrokerError, BrokerId, TopicPartition
from rehome.domain.plan.figures import Weakened
from rehome.domain.run.findings import SETTINGS_CHECK, Severity
from rehome.domain.time_range import TimeRange
from rehome.execution.access.policy_refusals import PolicyDifference
from rehome.execution.admission.slots import Direction
from rehome.execution.observation.drifted import Drift
from rehome.execution.observation.foreign_reassignments import Hindrance

ERROR, WARNING, INFO = Severity
FOREIGN_CHECK = "foreign reassignments"
INFLOW_CHECK = "inflow"
POLICIES_CHECK, CHANNELS_CHECK = "policies", "alerts"
RACKS_CHECK = "racks"
REDUNDANCY_CHECK = "redundancy"
VERSIONS_CHECK = "versions"


@enum.unique
class FoundKind(enum.StrEnum):
    """Each with its check, and how bad it is. Of in-sync replicas the worst first."""

    check: str
    severity: Severity

    def __new__(cls, value: str, check: str, severity: Severity) -> Self:
        """A kind by its name, as ``dry_run.json`` has it."""
        kind = str.__new__(cls, value)
        kind._value_, kind.check, kind.severity = value, check, severity
        return kind

    PLAN_ACTIVE = "plan_active", "active plan", ERROR
    PLAN_ACTIVE_BESIDE = "plan_active_beside", "active plan", WARNING
    MOVED_BY_ACTIVE = "moved_by_active", "active plan", ERROR
    RIGHT_LACKING = "right_lacking", "rights", ERROR
    BROKER_DEAD = "broker_dead", "brokers", ERROR
    BROKER_CORDONED = "broker_cordoned", "brokers", ERROR
    BROKER_OFFLINE = "broker_offline", "brokers", ERROR
    BROKER_SILENT = "broker_silent", "brokers", ERROR
    OTHER_BROKER_SILENT = "other_broker_silent", "brokers", WARNING
    WEAKENED = "weakened", REDUNDANCY_CHECK, WARNING
    WEAKENED_AGAINST_SETTING = "weakened_against_setting", REDUNDANCY_CHECK, ERROR
    WEAKENED_AS_ASKED = "weakened_as_asked", REDUNDANCY_CHECK, INFO
    NO_SOURCE = "no_source", "in-sync replicas", ERROR
    TOO_FEW_REPLICAS = "too_few_replicas", "in-sync replicas", ERROR
    LOSES_IN_SYNC = "loses_in_sync", "in-sync replicas", ERROR
    ALREADY_TOO_FEW = "already_too_few", "in-sync replicas", WARNING
    BELOW_MINIMUM = "below_minimum", "in-sync replicas", WARNING
    AT_MINIMUM = "at_minimum", "in-sync replicas", WARNING
    UNDER_REPLICATED = "under_replicated", "in-sync replicas", WARNING
    WAITS_FOR_ISR = "waits_for_isr", "in-sync replicas", WARNING
    LEADER_OUT_OF_SYNC = "leader_out_of_sync", "in-sync replicas", WARNING
    ALWAYS_AT_MINIMUM = "always_at_minimum", "in-sync replicas", INFO
    CHANGED = "changed", "drift", ERROR
    NOT_COMPARED = "not_compared", "drift", ERROR
    GROWN = "grown", "drift", WARNING
    FOREIGN_ON_MOVE = "foreign_on_move", FOREIGN_CHECK, ERROR
    FOREIGN = "foreign", FOREIGN_CHECK, ERROR
    FOREIGN_BESIDE = "foreign_beside", FOREIGN_CHECK, INFO
    CONTROLLER_REFUSES = "controller_refuses", "verdict", ERROR
    THROTTLE_STOPS_ALL = "throttle_stops_all", "throttle", ERROR
    THROTTLE_STOPS_BROKER = "throttle_stops_broker", "throttle", ERROR
    THROTTLE_OF_NO_BROKER = "throttle_of_no_broker", "throttle", ERROR
    THROTTLE_UNUSED = "throttle_unused", "throttle", INFO
    NO_THROTTLE = "no_throttle", "throttle", WARNING
    THROTTLE_REFUSED = "throttle_refused", "throttle", ERROR
    THROTTLE_UNREADABLE = "throttle_unreadable", "throttle", ERROR
    RATE_NOT_PUT_BACK = "rate_not_put_back", "throttle", WARNING
    OTHERS_RATE_STOPS = "others_rate_stops", "throttle", ERROR
    OTHERS_RATE_HOLDS = "others_rate_holds", "throttle", WARNING
    THROTTLE_LIST_FULL = "throttle_list_full", "throttle", ERROR
    IN_STEPS = "in_steps", "steps", INFO
    CORDON_REFUSED = "cordon_refused", "cordon", ERROR
    CORDON_NOT_KNOWN = "cordon_not_known", "cordon", ERROR
    CORDON_AWAY = "cordon_away", "cordon", WARNING
    VERSIONS_NOT_KNOWN = "versions_not_known", VERSIONS_CHECK, INFO
    REPLICAS_NOT_CHECKED = "replicas_not_checked", VERSIONS_CHECK, INFO
    ENDS_OUT_OF_SYNC = "ends_out_of_sync", VERSIONS_CHECK, WARNING
    COPY_STANDS = "copy_stands", VERSIONS_CHECK, ERROR
    COPIES_MAY_STAND = "copies_may_stand", VERSIONS_CHECK, WARNING
    INFLOW_SLOWS = "inflow_slows", INFLOW_CHECK, WARNING
    INFLOW_OUTPACES = "inflow_outpaces", INFLOW_CHECK, ERROR
    PAST_WINDOW = "past_window", "window", INFO
    FITS_NO_WINDOW = "fits_no_window", "window", WARNING
    DISK_TOO_SMALL = "disk_too_small", "disk", ERROR
    FITS_INTO_NO_LOG_DIR = "fits_into_no_log_dir", "disk", ERROR
    MAY_FILL_LOG_DIR = "may_fill_log_dir", "disk", WARNING
    NO_RACK = "no_rack", RACKS_CHECK, WARNING
    RACK_WITHOUT_LEVELS = "rack_without_levels", RACKS_CHECK, WARNING
    LIMITS_OF_NO_BROKER = "limits_of_no_broker", "limits", WARNING
    SETTINGS_NOT_KEPT = "settings_not_kept", SETTINGS_CHECK, WARNING
    LIMIT_BROKEN = "limit_broken", SETTINGS_CHECK, ERROR
    SETTING_CHANGED = "setting_changed", SETTINGS_CHECK, WARNING
    SETTINGS_NOT_READ = "settings_not_read", SETTINGS_CHECK, WARNING
    POLICIES_DIFFER = "policies_differ", POLICIES_CHECK, WARNING
    CHANNEL_UNUSABLE = "channel_unusable", CHANNELS_CHECK, WARNING
    COUNT_REFUSED = "count_refused", "partitions", ERROR
    PROPOSAL_TAKEN = "proposal_taken", "reassignment", INFO


class IsrShape(NamedTuple):
    """What many partitions of a topic share.

    :param in_sync: replicas in the ISR now; ``least``: while the move runs, if nothing fails.
    :param replicas: now, without those that are being added; ``replicas_in_the_end``
        of the move.
    :param brokers: that the kind is about.
    """

    in_sync: int = 0
    least: int = 0
    replicas: int = 0
    replicas_in_the_end: int = 0
    minimum: int = 1
    brokers: tuple[BrokerId, ...] = ()


NO_SHAPE = IsrShape()


@dataclass(frozen=True, slots=True)
class TypedFinding:
    """One thing that a dry run has found; which values it has follows from its kind.

    :param subject: the partition, broker or resource it is about.
    :param error: what a broker said, or would say.
    :param brokers, partitions: that it is about beside the subject; ``count``: so many of them, or
        of the items of a list; ``moves``: so many; ``most``: at once, or characters, at most.
    :param rate_bytes_per_s: that would hold, or by which partitions grow; ``delivered``: of it, by
        the throttle; ``direction``: of a broker.
    :param size_bytes: to be copied; ``before_bytes``: at the snapshot; ``usable_bytes``: by volume.
    :param takes: time of the plan; ``least_s``: of one copy; ``left_s``: of the window.
    :param partition: of a foreign reassignment to ``brokers``; ``hindrance``: what keeps it from
        ending.
    :param key: of a config; ``value``: of it or of a setting, the name of a rack, the id of a
        plan, or what others say; ``was``: the value before; ``mark``: the key of its mark.
    :param drift: how a partition has changed; ``differs``: what policies differ in.
    """

    kind: FoundKind
    subject: str
    error: BrokerError | None = None
    brokers: tuple[BrokerId, ...] = ()
    partitions: tuple[str, ...] = ()
    count: int = 0
    moves: int = 0
    most: int = 0
    rate_bytes_per_s: float = 0
    delivered: float = 0
    direction: Direction = Direction.IN
    size_bytes: int = 0
    before_bytes: int = 0
    usable_bytes: tuple[int, ...] = ()
    takes: TimeRange | None = None
    least_s: float = 0.0
    left_s: float = 0.0
    key: str = ""
    value: str = ""
    was: str = ""
    mark: str = ""
    weakened: Weakened | None = None
    isr: IsrShape = NO_SHAPE
    partition: TopicPartition | None = None
    hindrance: Hindrance | None = None
    drift: Drift | None = None
    differs: PolicyDifference | None = None

    @property
    def severity(self) -> Severity:
        """How bad it is."""
        return self.kind.severity

    @property
    def why(self) -> str:
        """What a broker said, by Kafka's name for it."""
        return "" if self.error is None else f"{self.error.name}: {self.error.message}"


Texts = dict[FoundKind, str | Callable[[TypedFinding], str]]
"""Words of kinds: the same for each finding, or made of the values of one."""
