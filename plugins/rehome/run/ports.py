"""Where extras plug into the core: what each may do for a run, typed.

The core calls these ports, and imports no extra. ``rehome.extras.composition`` says which extra is
behind which port. A port without an extra does nothing: a plan is made, carried out and shown all
the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from rehome.account.clusters.cluster_facts import KnownLoad
    from rehome.account.evidence import PaceFollower
    from rehome.alerts.alert import Alert
    from rehome.cluster.interface.port import ClusterPort
    from rehome.cluster.snapshot.model import Snapshot
    from rehome.domain.plan.plan import Plan
    from rehome.domain.request.request import ReassignmentRequest
    from rehome.domain.run.causes.error_kind import ErrorKind
    from rehome.domain.run.flows import RateReason
    from rehome.domain.run.run_policy import Policy
    from rehome.execution.advance import Advance
    from rehome.execution.poll import Poll
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger
    from rehome.ledger.stores.watched.starts import StartRecord
    from rehome.settings import Settings
    from rehome.warehouse import Warehouse

COMPOSITION = "rehome.extras.composition"


@dataclass(frozen=True, slots=True)
class Item:
    """An alert to deliver.

    :param only: names of channels; None = all.
    """

    alert: Alert
    only: Collection[str] | None = None


class AlertChannels:
    """What takes alerts to people; the log and the page have them anyway."""

    setting = "the setting alert_channels"
    """What problems of the setting itself are reported under."""

    def deliver_all(self, items: Sequence[Item]) -> list[dict[str, str]]:
        """Send alerts; never raises for what a channel does.

        :returns: of each item: channel → why it has not taken it; "" = it has.
        """
        return [{} for _ in items]

    def problems(self) -> Sequence[str]:
        """What keeps channels from being used, as far as that can be known before sending."""
        return ()

    def one_task(self) -> AbstractContextManager[None]:
        """Meanwhile all that is sent counts as one task's: a slow channel holds it once."""
        return nullcontext()

    def one_callback(self) -> AbstractContextManager[None]:
        """As one task, for a callback of a DAG run: the DAG processor has less time for it."""
        return nullcontext()


class PlanMetrics:
    """Metrics of a plan that runs."""

    def note_poll(self, poll: Poll) -> None:
        """A poll has observed it."""

    def note_step(self, done: Advance) -> None:
        """A step of it was carried out."""

    def note_copies(self, ledger: Ledger, pace: PaceFollower) -> None:
        """What each broker copies, as the newest poll has left it in the ledger.

        :param pace: follows the plan from poll to poll; a new one reads the last minute.
        """


class RunMetrics:
    """Metrics of runs. No method raises, or waits for who takes them."""

    def of_plan(self, plan: Plan, policy: Policy, settings: Settings) -> PlanMetrics:
        """Those of a plan that begins or goes on."""
        return PlanMetrics()

    def plan_ended(self, ledger: Ledger, cluster_id: str, plan_id: str) -> None:
        """No poll of a plan comes any more: it has ended or paused."""

    def rates_set(self, cluster_id: str, reasons: Collection[RateReason]) -> None:
        """Rates of throttles were set."""

    def error(self, cluster_id: str, kind: ErrorKind) -> None:
        """A poll or a step has met an error."""

    def snapshot_taken(self, cluster_id: str, at: datetime) -> None:
        """A snapshot is in the warehouse."""

    def plan_job(self, cluster_id: str, took: timedelta, gates: Mapping[str, bool]) -> None:
        """A plan job has ended.

        :param gates: each gate that has run → whether it passed.
        """

    def cluster(
        self,
        ledger: Ledger,
        cluster_id: str,
        *,
        swept_at: datetime | None = None,
        foreign: int | None = None,
    ) -> None:
        """What the ledger knows of a cluster.

        :param swept_at: when the sweep read it; None = another task than the sweep reports.
        :param foreign: how many throttles no plan has set; None = not known.
        """


class Heals(Protocol):
    """Runs that watching has started, to heal a finding without asking a person."""

    def by_watching(self, run: Any, ledger: Ledger) -> bool:
        """Whether watching has started a run."""
        ...

    def heal_by(self, run: Any, ledger: Ledger) -> StartRecord | None:
        """What a run heals; None = watching has not started it for that."""
        ...

    def heal_of(self, plan: PlanRecord, ledger: Ledger) -> StartRecord | None:
        """What a plan heals; None = it is no heal."""
        ...

    def urgent(
        self, ledger: Ledger, cluster_id: str, dag_id: str, connection: str
    ) -> StartRecord | None:
        """What a plan that was handed over to a DAG heals, where a plan that gets nowhere has to
        make way for it; None = there is none.
        """
        ...

    def goes_first(self, heal: StartRecord | None) -> bool:
        """Whether a plan which gets nowhere has to make way for it."""
        ...

    def refuse_changed_rules(self, heal: StartRecord | None, connection: str) -> None:
        """See that it is to be healed still.

        :raises NotHealedError: it is not.
        """

    def refuse_over(self, heal: StartRecord | None, ledger: Ledger) -> None:
        """See that what is to be healed is there still.

        :raises NotHealedError: it is over.
        """

    def refuse_away(self, heal: StartRecord, snapshot: Snapshot, ledger: Ledger) -> None:
        """See that what a heal copies is lost, and not merely away.

        :raises NotHealedError: it may come back.
        """

    def hand_over(self, run: Any, ledger: Ledger, plan_id: str, actor: str) -> None:
        """Hand a heal that a run has planned over to the windows of its cluster."""

    def snapshot_taken(self, ledger: Ledger, snapshot: Snapshot) -> None:
        """A snapshot is in the warehouse."""


class _NoHeals:
    def by_watching(self, *_: object) -> bool:
        return False

    def heal_by(self, *_: object) -> None:
        return None

    heal_of = urgent = heal_by

    def goes_first(self, *_: object) -> bool:
        return False

    def refuse_changed_rules(self, *_: object) -> None:
        return None

    refuse_over = refuse_away = hand_over = snapshot_taken = refuse_changed_rules


class KnownLoads:
    """What was measured of traffic and growth, over days."""

    def read(
        self, warehouse: Warehouse, snapshot: Snapshot, days: int, min_hours: float
    ) -> KnownLoad | None:
        """Of the cluster of a snapshot, before it; None = there is no history.

        :param days: how many days of history are read.
        :param min_hours: a partition's load is known once it was watched for that long.
        """
        return None


class ExportedFiles(Protocol):
    """Files of a plan for other tools."""

    @property
    def texts(self) -> Mapping[str, str]:
        """Name → text."""

    @property
    def batches(self) -> Sequence[str]:
        """Names of the reassignments, in the order in which they are carried out."""

    def to_json(self) -> dict[str, Any]:
        """What is kept of them, as plain JSON types."""


class FileExport:
    """Writes a plan down for other tools."""

    def of(
        self,
        plan: Plan,
        request: ReassignmentRequest,
        rate_bytes_per_s: int,
        most_partitions: int,
        cluster: ClusterPort,
    ) -> ExportedFiles | None:
        """Its files; None = there is nothing that makes them.

        :param rate_bytes_per_s: of the throttle; ``most_partitions``: of one reassignment.
        """
        return None


@dataclass(frozen=True, slots=True)
class Extras:
    """One extra at most behind each port."""

    channels: AlertChannels = field(default_factory=AlertChannels)
    metrics: RunMetrics = field(default_factory=RunMetrics)
    heals: Heals = field(default_factory=_NoHeals)
    loads: KnownLoads = field(default_factory=KnownLoads)
    export: FileExport = field(default_factory=FileExport)


@cache
def extras() -> Extras:
    """Those of this installation."""
    return cast("Extras", import_module(COMPOSITION).INSTALLED_EXTRAS)
