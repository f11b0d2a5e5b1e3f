"""The cluster of a plan: what acts, reads or settles for a plan accepts nothing else.

A connection may name another cluster than the plan's, and may be edited while a run goes on. Topics
and brokers of the same names are there as well, so the difference would not show in any answer but
the cluster's id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.kafka import ClusterDescription
from rehome.errors import RehomeError
from rehome.ledger.base.records import PlanRecord

if TYPE_CHECKING:
    # For mypy each call of the port is abstract here: only the class's own methods may make one.
    _Port = ClusterPort
else:
    _Port = object


class WrongClusterError(RehomeError):
    """The connection does not lead to the cluster that is to be acted on.

    :param cluster_id: of the cluster that was meant.
    :param found_id: of the cluster that the connection leads to.
    :param connection: the connection's name.
    :param plan_id: the plan that was to be acted for; None = none.
    :param planned_through: the connection that the plan was made through; None = not known.
    :param was_right: it led to the right cluster when it was asked before.
    """

    def __init__(
        self,
        cluster_id: str,
        found_id: str,
        connection: str,
        plan_id: str | None = None,
        planned_through: str | None = None,
        *,
        was_right: bool = False,
    ) -> None:
        self.cluster_id = cluster_id
        self.found_id = found_id
        self.connection = connection
        self.plan_id = plan_id
        self.planned_through = planned_through
        through = f", planned through connection {planned_through}" if planned_through else ""
        whose = f"plan {plan_id} is for" if plan_id else "this step is for"
        super().__init__(
            f"Connection {connection} leads to cluster {found_id}, but {whose} cluster "
            f"{cluster_id}{through}",
            state_left=_state_left(cluster_id, was_right=was_right),
            next_step=self._next_step(),
        )

    def _next_step(self) -> str:
        if self.planned_through == self.connection:
            return (
                "The connection has been edited, or its addresses belong to another cluster by "
                f"now. Let it lead to cluster {self.cluster_id} again, or name another connection "
                "that does; then repeat the step."
            )
        return f"Name a connection to cluster {self.cluster_id}, and repeat the step."


def _state_left(cluster_id: str, *, was_right: bool) -> str:
    goes_on = f"What is in flight on cluster {cluster_id} goes on."
    if was_right:
        return (
            "The connection led to the right cluster before; what this step has sent since may "
            f"have reached either. {goes_on}"
        )
    return f"Nothing was changed on either cluster. {goes_on}"


class OwnCluster(_Port):
    """A :class:`ClusterPort` whose every call goes to one cluster, known by its id.

    No call passes before the id was read and compared; every later description is compared, too.
    Made by :meth:`of_plan`, :meth:`of` or :meth:`itself` only.
    """

    _port: ClusterPort
    _error: Callable[[str, bool], WrongClusterError]
    _compared: bool
    cluster_id: str

    @classmethod
    def of_plan(cls, port: ClusterPort, record: PlanRecord) -> Self:
        """The cluster of a plan in the ledger."""
        return cls.of(port, record.cluster_id, record.plan_id, record.planned_through)

    @classmethod
    def of(
        cls,
        port: ClusterPort,
        cluster_id: str,
        plan_id: str | None = None,
        planned_through: str | None = None,
    ) -> Self:
        """The cluster of this id. Asks nothing yet: the first call does, or :meth:`compare`.

        :param plan_id: for whom, to be named in the error; ``planned_through`` likewise.
        """
        own = cls()
        own.cluster_id = cluster_id
        own._port = port
        own._compared = False
        own._error = lambda actual_id, was_right: WrongClusterError(
            cluster_id, actual_id, port.name, plan_id, planned_through, was_right=was_right
        )
        return own

    @classmethod
    def itself(cls, port: ClusterPort) -> Self:
        """Whatever cluster the port leads to now: for what is found in the ledger by its id.

        :raises ClusterError: it cannot be reached.
        """
        return cls.of(port, port.describe_cluster().cluster_id)

    def behind(self, wrap: Callable[[ClusterPort], ClusterPort]) -> OwnCluster:
        """The same cluster through ``wrap`` of its port; what was compared stays so."""
        own = OwnCluster.of(wrap(self._port), self.cluster_id)
        own._error, own._compared = self._error, self._compared
        return own

    def describe_cluster(self) -> ClusterDescription:
        """As the port does.

        :raises WrongClusterError: it is another cluster.
        """
        description, was_right = self._port.describe_cluster(), self._compared
        self._compared = description.cluster_id == self.cluster_id
        if not self._compared:
            raise self._error(description.cluster_id, was_right)
        return description

    def compare(self) -> None:
        """Compare now, where the cluster answers, so that nothing is written before.

        Where it does not answer, its first answer is compared instead: nothing passes until then.

        :raises WrongClusterError: it is another cluster.
        """
        if self._compared:
            return
        try:
            self.describe_cluster()
        except ClusterError:
            return  # the step's own first call meets the same, and reports it

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            call = getattr(self._port, name)
            if self._compared or not callable(call):
                return call

            def compared_call(*args: Any, **options: Any) -> Any:
                if not self._compared:
                    self.describe_cluster()
                return call(*args, **options)

            return compared_call
