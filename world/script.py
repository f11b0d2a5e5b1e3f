"""A run as data: what there is, who does what and when, and which faults strike.

Nothing but a script and its seed decides what happens, so a script that is shortened can be run
again, and its text is Python that a test can hold.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any


class What(enum.StrEnum):
    """What an actor may do. Arguments are in the order of ``Do.args``."""

    # A Rehome, by its name; people at its page and in its Airflow.
    START = "start"  # the number of a plan
    PAUSE = "pause"
    RESUME = "resume"
    NEXT_WINDOW = "next_window"  # the plan that was started last, handed over to it
    CHANGE_THROTTLE = "change_throttle"  # bytes per second
    CHANGE_RATES = "change_rates"  # bytes per second or None, rates of brokers as Plan.own
    CHANGE_MOVES = "change_moves"  # moves at once
    CANCEL = "cancel"
    ROLL_BACK = "roll_back"
    ANSWER = "answer"  # "approve", "reject" or "send_back": what a run asks people
    CLEAR = "clear"  # a task
    MARK = "mark"  # "success" or "failed": the task that runs
    PAUSE_DAG = "pause_dag"  # a DAG; none = the one of reassignments
    UNPAUSE_DAG = "unpause_dag"  # the same
    DELETE_RUN = "delete_run"
    KILL = "kill"  # the process of the run
    SWEEP = "sweep"
    LIST_FOREIGN = "list_foreign"  # a topic, or "" for all: what any client has in flight of it
    FOLLOW_FOREIGN = "follow_foreign"  # the same, until it has ended
    CANCEL_FOREIGN = "cancel_foreign"  # the same of others; True = and their throttles, too
    ADOPT_FOREIGN = "adopt_foreign"  # the same, bytes per second
    CLOCK_JUMPS = "clock_jumps"  # seconds
    LEDGER_AWAY = "ledger_away"  # seconds
    LEDGER_BACKED_UP = "ledger_backed_up"
    LEDGER_RESTORED = "ledger_restored"
    LEDGER_NEW = "ledger_new"
    LED_ELSEWHERE = "led_elsewhere"  # seconds: its connection leads to another cluster
    SNAPSHOT_THROUGH = "snapshot_through"  # a connection
    SWEEP_THROUGH = "sweep_through"  # a connection
    ENTRY_ADDED = "entry_added"  # seconds: a second entry of the clusters file is for the cluster
    CHANNEL_FALTERS = "channel_falters"  # how, as world.rehome.channel.Answers has it; seconds
    # An admin, with Kafka's own tools.
    SET_RATE = "set_rate"  # broker or None for the default, key, bytes per second
    DELETE_RATE = "delete_rate"  # broker or None, key
    SET_LIST = "set_list"  # topic, key, value
    ADD_TO_LIST = "add_to_list"  # topic, key, items
    DELETE_LIST = "delete_list"  # topic, key
    DELETE_TOPIC = "delete_topic"  # topic
    CREATE_TOPIC = "create_topic"  # topic: as the script has it
    REASSIGN = "reassign"  # topic, partition, replicas: no throttle of its own
    CANCEL_ALL = "cancel_all"  # kafka-reassign-partitions --cancel of what is in flight of a topic
    TOOL_EXECUTE = "tool_execute"  # topic, partition, replicas, bytes per second
    TOOL_VERIFY = "tool_verify"  # topic, partition: what its --execute has set is deleted
    CRUISE_CONTROL = "cruise_control"  # topic, partition, replicas, bytes per second
    MOVE_LOG_DIR = "move_log_dir"  # topic, partition, broker: to the other one of its log dirs
    # Fate.
    BROKER_KILLED = "broker_killed"  # broker
    BROKER_STOPPED = "broker_stopped"  # broker
    BROKER_STARTED = "broker_started"  # broker
    BROKER_LOST = "broker_lost"  # broker: killed, and never back
    BROKER_WIPED = "broker_wiped"  # broker: its disks are empty when it starts
    DISK_FILLED = "disk_filled"  # broker, number of its log dir: by others' files
    LOG_DIR_FAILED = "log_dir_failed"  # broker, number of its log dir
    RIGHTS_REVOKED = "rights_revoked"  # topic or "" for the cluster, an operation or "ALL"
    RIGHTS_GIVEN_BACK = "rights_given_back"  # topic or "" for the cluster


class Blow(enum.StrEnum):
    """What may strike a process at one of its points."""

    DEATH = "death"  # SIGKILL
    FAILURE = "failure"  # an exception out of nowhere: the task fails
    REQUEST_LOST = "request_lost"
    ANSWER_LOST = "answer_lost"
    NOT_CONTROLLER = "not_controller"
    REFUSED = "refused"
    BROKER_LOST = "broker_lost"  # one broker does not answer, of a call that asks each
    BROKER_ANSWER_LOST = "broker_answer_lost"  # the same, and it has done what it was asked


OwnRates = tuple[tuple[int, int | None, int | None], ...]
"""Broker, and bytes per second that it sends and receives; None = as the plan has it."""


def own_as_param(own: OwnRates) -> dict[str, dict[str, int]]:
    """As the parameter ``throttle_by_broker``."""
    sides = ("leader", "follower")
    return {
        str(broker): {side: rate for side, rate in zip(sides, rates, strict=True) if rate}
        for broker, *rates in own
    }


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic to begin with.

    :param partitions: replicas of each.
    :param size_bytes: of each partition; ``inflow``: bytes per second that are produced to each.
    :param deleted: messages that DeleteRecords has taken from the beginning of each.
    :param min_isr: min.insync.replicas.
    """

    name: str
    partitions: tuple[tuple[int, ...], ...]
    size_bytes: int = 40_000_000
    inflow: int = 0
    deleted: int = 0
    min_isr: int = 1

    @property
    def configs(self) -> dict[str, str]:
        """Those that it is created with."""
        return {"min.insync.replicas": str(self.min_isr)} if self.min_isr > 1 else {}


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan of one installation.

    :param moves: (topic, partition, target); of a drain, none.
    :param drains: brokers that the real planner is to empty, by a snapshot of the cluster.
    :param cordons: whether a drain cordons its brokers until it ends.
    :param approval: whether a person has to approve it.
    :param log_dirs: whether replicas that stay go to the other log dir of their broker.
    :param tried_out: whether it is tried out before, and refused where the dry run says so.
    :param window_s: its window's end, in seconds since the world began; None = no window.
    :param own: rates of single brokers.
    :param at_once: how many new replicas a partition gets at once; None = all.
    :param through: the connection that its run names; "" = the one that runs have by default.
    :param dry_run: its run makes it, and carries nothing out.
    """

    of: str
    moves: tuple[tuple[str, int, tuple[int, ...]], ...]
    rate: int = 2_000_000
    slots: int = 4
    window_s: float | None = None
    unthrottled: bool = False
    drains: tuple[int, ...] = ()
    log_dirs: bool = False
    tried_out: bool = False
    cordons: bool = False
    approval: bool = False
    own: OwnRates = ()
    at_once: int | None = None
    through: str = ""
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Watch:
    """One installation watches the cluster: snapshots on a schedule, each of them judged.

    :param policy: what follows a dead broker: "heal" or "propose".
    :param every_s: seconds between two snapshots; ``grace_s``: before a broker counts as dead.
    :param window_s: when the maintenance window opens, in whole minutes of the first hour, and for
        how long; None = the cluster has no windows.
    :param rate: bytes per second that are asked for where nobody chooses.
    :param own_plan: whether a window in which nothing waits makes a plan of its own.
    :param later: more windows, as ``window_s`` has the first one.
    :param approval: whether a person has to approve what nobody has chosen otherwise.
    """

    of: str
    policy: str = "heal"
    every_s: float = 60.0
    grace_s: float = 100.0
    window_s: tuple[int, int] | None = None
    heals_a_day: int = 3
    budget_bytes: int | None = None
    rate: int = 2_000_000
    own_plan: bool = True
    later: tuple[tuple[int, int], ...] = ()
    approval: bool = False


@dataclass(frozen=True, slots=True)
class Do:
    """Somebody does something."""

    at_s: float
    who: str
    what: What
    args: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault strikes a Rehome at a point of its processes, counted over the whole run.

    :param after: only answers to this call are counted, by its name in Kafka's protocol; "" = every
        point is.
    """

    whom: str
    point: int
    blow: Blow
    after: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    """A throttle that somebody else has set before: topic name, broker or "" for the default."""

    of_topic: bool
    name: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Script:
    """All of a run.

    :param order: seed of who runs next, of latencies, lags and ids.
    :param quiet_s: from then on nothing is done any more; brokers and ledgers are back.
    :param watches: installations that watch the cluster.
    :param channels: names of the installations whose alerts a webhook gets.
    :param one_run: names of those in which Airflow lets one run of each DAG be active at a time.
    :param racks: of each broker, in the order of their ids; () = no rack holds two of them.
    """

    order: int
    brokers: int
    topics: tuple[Topic, ...]
    plans: tuple[Plan, ...]
    configs: tuple[Config, ...] = ()
    does: tuple[Do, ...] = ()
    strikes: tuple[Strike, ...] = ()
    quiet_s: float = 900.0
    watches: tuple[Watch, ...] = ()
    channels: tuple[str, ...] = ()
    one_run: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()

    @property
    def secured(self) -> bool:
        """Whether ACLs hold: where rights are taken away."""
        return any(does.what is What.RIGHTS_REVOKED for does in self.does)

    @property
    def installations(self) -> tuple[str, ...]:
        """Names of the Rehomes in it."""
        names = {plan.of for plan in self.plans} | {watch.of for watch in self.watches}
        return tuple(sorted(names))

    def __len__(self) -> int:
        """How much there is in it; what a shorter script has less of."""
        moves = sum(len(plan.moves) for plan in self.plans)
        return len(self.does) + len(self.strikes) + len(self.plans) + moves + len(self.configs)

    def text(self) -> str:
        """Python that makes it; a test may hold it."""
        return pretty(self)


def pretty(value: Any, indent: int = 0) -> str:
    """A value as Python, one item a line where it does not fit into one."""
    short = _short(value)
    if len(short) + indent <= 96 or not isinstance(value, Script | tuple):
        return short
    pad = " " * (indent + 4)
    if isinstance(value, tuple):
        items = "".join(f"{pad}{pretty(item, indent + 4)},\n" for item in value)
        return f"(\n{items}{' ' * indent})"
    parts = "".join(
        f"{pad}{name}={pretty(getattr(value, name), indent + 4)},\n" for name in _set(value)
    )
    return f"{type(value).__name__}(\n{parts}{' ' * indent})"


def _set(value: Any) -> list[str]:
    """Fields that are not as by default."""
    fields = value.__dataclass_fields__
    return [name for name, item in fields.items() if getattr(value, name) != item.default]


def _short(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return "(" + "".join(f"{_short(item)}, " for item in value).rstrip(" ") + ")"
    if hasattr(value, "__dataclass_fields__"):
        parts = ", ".join(f"{name}={_short(getattr(value, name))}" for name in _set(value))
        return f"{type(value).__name__}({parts})"
    return repr(value)
