"""The caps, broker sets and targets that a plan was made with, and those that its cluster has now.

They are kept in the plan's directory when it is made. Until it is carried out, days may pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rehome import installation
from rehome.clusters.clusters_file import ClustersFileError
from rehome.domain.request.cluster_values import ClusterValues
from rehome.domain.request.parameters import OF_A_RUN
from rehome.domain.request.validation import is_blank
from rehome.errors import STEP_UNCHANGED, InvalidRequestError, RehomeError
from rehome.fleet import clusters
from rehome.params import FORM_DEFAULTS
from rehome.run.ports import extras

if TYPE_CHECKING:
    from rehome.cluster.snapshot.model import Snapshot
    from rehome.domain.plan.move import Move
    from rehome.domain.request.cluster_values import Counting
    from rehome.domain.request.limits import BrokerCaps
    from rehome.domain.request.presets import Filled
    from rehome.domain.request.request import ReassignmentRequest
    from rehome.execution.dry_run.typed_finding import TypedFinding
    from rehome.settings import Settings
    from rehome.warehouse import PlanDirectory

FILE = "settings.json"
_RATES = ("bytes_in", "bytes_out")


def values_now(action: str, connection: str, of_run: Collection[str] = ()) -> ClusterValues:
    """What the cluster behind a connection has now, for plans of an action.

    :param of_run: parameters that the run states itself.
    :raises ClustersFileError: the clusters file cannot be used.
    """
    entry = clusters.through(connection)
    settings = installation.settings(connection)
    targets = {} if entry is None else entry.targets
    return ClusterValues.of(settings.caps, settings.broker_sets, targets, action, of_run)


def stated_params(filled: Filled) -> frozenset[str]:
    """Parameters that a person or a preset has chosen: the cluster's values do not count there."""
    return frozenset(
        name
        for name, value in filled.params.items()
        if name not in (*OF_A_RUN, *filled.by_targets)
        and not is_blank(value)
        and (name in filled.chosen or value != FORM_DEFAULTS.get(name))
    )


def keep(directory: PlanDirectory, values: ClusterValues) -> None:
    """Record what a plan is made with."""
    directory.write_json(FILE, values.to_json())


def recorded_values(directory: PlanDirectory) -> ClusterValues | None:
    """What a plan was made with; None = an earlier version of Rehome made it.

    :raises RehomeError: the record is damaged.
    """
    if not directory.exists(FILE):
        return None
    try:
        return ClusterValues.from_json(directory.read_json(FILE))
    except (ValueError, TypeError, LookupError, InvalidRequestError) as error:
        raise RehomeError(
            f"{directory.uri}/{FILE}, which says with which caps, broker sets and targets the plan "
            f"was made, cannot be read: {error}",
            state_left=STEP_UNCHANGED,
            next_step="Cancel the plan, and trigger a new run.",
        ) from None


def since(
    directory: PlanDirectory, action: str, connection: str
) -> tuple[ClusterValues | None, ClusterValues]:
    """What a plan was made with, and what its cluster has now for the same run.

    :raises ClustersFileError: the clusters file cannot be used.
    :raises RehomeError: the record is damaged.
    """
    was = recorded_values(directory)
    return was, values_now(action, connection, () if was is None else was.of_run)


@dataclass(frozen=True, slots=True)
class ComparedSettings:
    """What a plan was made with, compared with what its cluster has now.

    :param was: None = an earlier version of Rehome made the plan.
    :param now: None = the clusters file cannot be used; ``problem`` says why.
    :param connection: that leads to the cluster.
    """

    was: ClusterValues | None
    now: ClusterValues | None
    connection: str
    problem: str = ""

    @classmethod
    def of(
        cls, directory: PlanDirectory, action: str, connection: str, *, begun: bool
    ) -> ComparedSettings:
        """Read both.

        :param begun: the plan goes on though the clusters file cannot be used.
        :raises ClustersFileError: it cannot be used, and the plan has not begun.
        """
        try:
            return cls(*since(directory, action, connection), connection)
        except ClustersFileError as error:
            if not begun:
                raise
            return cls(None, None, connection, str(error))

    @property
    def counting(self) -> Counting | None:
        """What counts for the plan now; None = it is not known, or was not when it was made."""
        return None if self.was is None or self.now is None else self.now.counting()

    @property
    def caps(self) -> BrokerCaps | None:
        """The caps that count for the plan now; None = those that it was made with."""
        return None if self.was is None or self.now is None else self.now.counting_caps

    @property
    def limited(self) -> bool:
        """Whether caps or broker sets of now count for the plan, as far as that is known."""
        if self.was is None or self.now is None:
            return False
        return bool(self.now.counting_caps or self.now.counting_sets)

    def findings(
        self, snapshot: Snapshot, begun: Iterable[Move], left: Iterable[Move]
    ) -> list[TypedFinding]:
        """What a dry run says of it.

        :param begun: moves that are done or in flight; ``left``: those that have not started.
        """
        from rehome.execution.dry_run.settings_checks import not_compared, settings_findings

        if self.now is None:
            return [not_compared(self.problem)]
        return [*settings_findings(self.was, self.now, self.broken_limits(snapshot, begun, left))]

    def broken_limits(
        self, snapshot: Snapshot, begun: Iterable[Move], left: Iterable[Move]
    ) -> list[str]:
        """What is left of the plan that breaks caps and broker sets of now, a sentence each."""
        from rehome.planning.limits.current_limits import broken_by_what_is_left

        if self.was is None or self.now is None:
            return []
        caps = self.now.counting_caps
        of_brokers = (caps.default, *caps.brokers.values())
        if any(getattr(one, name) is not None for one in of_brokers for name in _RATES):
            snapshot = _with_rates(snapshot, installation.settings(self.connection))
        return broken_by_what_is_left(snapshot, begun, left, caps, self.now.counting_sets)


def _with_rates(snapshot: Snapshot, settings: Settings) -> Snapshot:
    """With what the history knows of the traffic, as a plan is made with it."""
    demands = settings.history_days, settings.min_history_hours
    load = extras().loads.read(installation.warehouse(), snapshot, *demands)
    return snapshot if load is None else load.with_rates(snapshot)


def renew_request(
    request: ReassignmentRequest, directory: PlanDirectory, connection: str
) -> ReassignmentRequest:
    """The request of a plan once more, for another one that is made now: with the caps and broker
    sets that the cluster has by now, where the run states none of its own.

    :raises ClustersFileError: the clusters file cannot be used.
    """
    was, now = since(directory, request.action, connection)
    if was is None:
        return request
    limits: Mapping[str, Any] = {"caps": now.caps, "broker_sets": now.broker_sets}
    return replace(request, **{n: v for n, v in limits.items() if n not in now.of_run})
