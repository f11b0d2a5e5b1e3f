"""The hook with the verbs of KIP-179, 240 and 455, for DAGs of people's own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rehome import installation
from rehome.clusters.binding import MisledError
from rehome.domain.actions import Action
from rehome.domain.clock import utc_now
from rehome.domain.kafka import Partial, ReplicaId, TopicPartition
from rehome.errors import InvalidRequestError
from rehome.execution.access.connection_policy import ADD_PARTITIONS, CANCEL_FOREIGN
from rehome.execution.access.policy_refusals import PolicyRefusal, RefusedBy
from rehome.execution.direct.direct_throttle import (
    DirectThrottle,
    clear_direct_throttle,
    set_direct_throttle,
)
from rehome.execution.direct.own_reassignments import (
    NotOwnReassignmentError,
    not_own_reassignments,
)
from rehome.execution.direct.wanted_copies import (
    CopyLimits,
    Targets,
    copy_limits,
    log_dir_limits,
    placed_replicas,
    read_targets,
    refuse_other_counts,
    validate_targets,
    wanted_copies,
)
from rehome.execution.foreign.in_flight import Chosen
from rehome.fleet import bound, policies
from rehome.hooks.cluster import KafkaClusterHook
from rehome.hooks.direct_changes import changing, plans_in_flight

if TYPE_CHECKING:
    from rehome.cluster.gateway import ClusterGateway
    from rehome.domain.kafka import BrokerError, BrokerId, OngoingReassignment
    from rehome.execution.direct.direct_throttle import TakenBack
    from rehome.execution.direct.wanted_copies import PlacedReplica
    from rehome.execution.foreign.read_flights import DescribedFlights

PartitionName = tuple[str, int]
"""A topic and the number of a partition."""
ReplicaName = tuple[str, int, int]
"""A topic, the number of a partition, and a broker."""


class KafkaReassignmentHook(KafkaClusterHook):
    """Kafka's own calls on one cluster, each with the brokers' answers as types.

    For tasks of your own. What a plan of Rehome has, calls of the hook have not: no snapshot, no
    gates, no approval, no clean-up after a crash. The ledger has each change among the events of
    the cluster and in the audit, with the task and who has asked for its run, and no plan. Who sets
    a throttle by the hook takes it back by the hook; who starts moves follows them, and cancels
    them. To Rehome they are those of another client: its plans wait for them, and never touch them.
    The hook adopts nothing, for it asks no person: what others have in flight is adopted by the
    task group :func:`~rehome.task_graph.foreign_reassignments`, which does.

    What may be done through the connection (``rehome.policy``, and that of other connections to the
    same cluster) holds for the calls that change something:

    - Where a person has to approve changes, they are refused: the hook asks no person. Use the task
      group :func:`~rehome.task_graph.reassign`, which does.
    - Actions, windows and the largest throttle hold as they do for runs. Copies that no throttle
      slows are refused, unless the policy has ``unthrottled``.
    - To stop and clean up what your code has begun is never refused: to cancel its reassignments,
      to take its throttle back.

    Every call opens connections of its own, and closes them. All of them raise:

    - ``InvalidRequestError``: there is no such connection, or its settings or policy are none.
    - ``ClusterError``: the call failed as a whole; ``MissingRightError`` names the right.
    - ``PolicyError``, ``MisledError`` (calls that change something): the policy refuses it, or the
      connection leads to another cluster than the one that it is bound to. Nothing was changed.

    What a broker says of one item is no exception: it is a ``BrokerError`` in the answer, with
    Kafka's ``code`` and ``name``, and the broker's ``message``.

    :param kafka_config_id: the Airflow connection, of type ``kafka``.
    """

    hook_name = "Apache Kafka reassignment (Rehome)"

    def list_partition_reassignments(
        self, partitions: Collection[PartitionName] | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """What is in flight, whichever client has started it (KIP-455).

        :param partitions: of these only; none of them in flight is no error. None = of all.
        :return: replicas of now, those that are being added, those that are being removed.
        """
        keys = None if partitions is None else [TopicPartition(*each) for each in partitions]
        with self._cluster() as cluster:
            return cluster.list_reassignments(keys)

    def describe_reassignments(
        self,
        *,
        topics: Sequence[str] = (),
        brokers: Collection[BrokerId] = (),
        partitions: Collection[PartitionName] | None = None,
    ) -> DescribedFlights:
        """All that is known of what is in flight, of any client (KIP-240, KIP-179).

        Of each: whose it is and since when, what it adds and removes, who leads, which throttles
        hold, bytes, rate and time left, and why it can never end, where that is so. The ledger
        remembers what was seen, so the rate is known from the second call on.

        :param topics: filters: ``orders``, ``logs-*``, ``re:…``, ``orders:3-9``; () = all.
        :param brokers: a replica is, or is to be, on one of these; () = any.
        :param partitions: just these; None = all.
        :return: the reassignments that were asked about, and KIP-179's status of their replicas.
        """
        from rehome.execution.foreign.read_flights import describe_reassignments

        keys = None
        if partitions is not None:
            keys = frozenset(TopicPartition(*each) for each in partitions)
        chosen = Chosen(tuple(topics), frozenset(brokers), keys)
        with self._cluster() as cluster, installation.open_ledger() as ledger:
            try:
                return describe_reassignments(cluster, ledger, utc_now(), chosen)
            except ValueError as error:
                raise InvalidRequestError([f"topics: {error}."]) from error

    def alter_partition_reassignments(
        self,
        targets: Mapping[PartitionName, Sequence[BrokerId] | None],
        *,
        allow_replication_factor_change: bool = False,
        own_targets: Mapping[PartitionName, Sequence[BrokerId]] | None = None,
        allow_reassignments_of_others: bool = False,
    ) -> dict[TopicPartition, BrokerError | None]:
        """Start reassignments, replace those in flight, or cancel them (KIP-455).

        Accepted is not done: list what is in flight, or use ``ReassignmentSensor(drive=False)``.
        Set a throttle first (:meth:`set_replication_throttle`).

        Of what is in flight, only your own is cancelled or replaced. Kafka keeps no owner, and the
        hook keeps no record that it could know one by: state the targets that your code has set, in
        ``own_targets``. What is in flight to that target counts as yours, unless the ledger has a
        plan that has started it. That another client has asked for the same target cannot be known.
        To ask again for what is in flight replaces nothing, and needs neither argument. Kafka
        compares nothing: what another client sets between the call's reading and its request is
        lost, too.

        :param targets: replicas wanted, the preferred leader first; None = cancel. A cancel
            restores the set of replicas, and not their order.
        :param allow_replication_factor_change: without it, another number of replicas is refused;
            before Kafka 4.1, whose controllers do not look at it, by the hook.
        :param own_targets: partition → the target that your code has set before; None = none.
        :param allow_reassignments_of_others: cancel and replace also what is not known to be yours.
            The policy has to allow ``cancel_foreign``, and no approval may be asked for. A plan
            takes it as another client's doing: cancel the plan instead.
        :return: the controller's verdict per partition; None = accepted. Code 85: there was nothing
            to cancel. Code -1: it is not known whether the controller has acted on it.
        :raises NotOwnReassignmentError: something of it is in flight, and not known to be yours.
            Nothing was changed; ``reassignments`` has each, with the plan that has started it.
        """
        new_targets = _targets(targets)
        starts = {
            partition: target for partition, target in new_targets.items() if target is not None
        }
        with self._cluster() as cluster:
            now = read_targets(cluster, new_targets)
            if starts:
                limits = copy_limits(cluster, wanted_copies(new_targets, now))
                self._require(cluster, Action.REASSIGN, limits)
            leave = allow_reassignments_of_others
            others = self._require_own(
                cluster, new_targets, now.ongoing, own_targets or {}, leave=leave
            )
            allow = allow_replication_factor_change
            refusals = {} if allow else refuse_other_counts(cluster, new_targets, now)
            sent = {part: target for part, target in new_targets.items() if part not in refusals}
            call, stops = "alter_partition_reassignments", not starts and not others
            counts = {"cancels": len(new_targets) - len(starts), "of_others": others}
            with changing(cluster, call, new_targets, stops=stops, **counts) as change:
                answered = cluster.alter_reassignments(sent, allow_replication_factor_change=allow)
                verdicts = {**answered, **refusals}
                change.note_answer(verdicts)
            return verdicts

    def validate(
        self,
        targets: Mapping[PartitionName, Sequence[BrokerId] | None],
        *,
        allow_replication_factor_change: bool = False,
    ) -> dict[TopicPartition, BrokerError | None]:
        """The verdict that :meth:`alter_partition_reassignments` would get; changes nothing.

        Kafka cannot validate a reassignment, so this predicts what its controllers say. Rights,
        disks, racks and ``min.insync.replicas`` are not looked at: the dry run of a plan does.

        :return: per partition the controller's code and message; None = it would accept.
        """
        with self._cluster() as cluster:
            return validate_targets(
                cluster,
                _targets(targets),
                allow_replication_factor_change=allow_replication_factor_change,
            )

    def describe_replica_log_dirs(
        self,
        replicas: Collection[ReplicaName] | None = None,
        *,
        brokers: Collection[BrokerId] | None = None,
    ) -> Partial[dict[ReplicaId, PlacedReplica]]:
        """Where replicas lie, how large they are, and where they are being moved (KIP-113).

        :param replicas: these only; None = all. One that its broker does not have is left out.
        :param brokers: ask these; None = those of ``replicas``, or all that are alive.
        :return: with ``missing``: brokers that did not answer, and why.
        """
        replica_ids = None if replicas is None else {ReplicaId(*each) for each in replicas}
        broker_ids = brokers
        if broker_ids is None and replica_ids is not None:
            broker_ids = {replica.broker for replica in replica_ids}
        partitions = None if replica_ids is None else {each.topic_partition for each in replica_ids}
        with self._cluster() as cluster:
            answer = cluster.describe_log_dirs(broker_ids, partitions)
        return Partial(placed_replicas(answer.value, replica_ids), answer.missing)

    def alter_replica_log_dirs(
        self, targets: Mapping[ReplicaName, str]
    ) -> dict[ReplicaId, BrokerError | None]:
        """Move replicas between log dirs of their brokers (KIP-113).

        :param targets: replica → the path of the log dir that it is to lie in.
        :return: each broker's verdict per replica; None = accepted. Code 57: no such log dir.
        """
        paths = {ReplicaId(*replica): path for replica, path in targets.items()}
        with self._cluster() as cluster:
            limits = log_dir_limits(cluster, {replica.broker for replica in paths})
            self._require(cluster, Action.MOVE_LOG_DIRS, limits)
            with changing(cluster, "alter_replica_log_dirs", paths) as change:
                verdicts = cluster.alter_replica_log_dirs(paths)
                change.note_answer(verdicts)
            return verdicts

    def set_replication_throttle(
        self,
        targets: Mapping[PartitionName, Sequence[BrokerId]],
        rate_bytes_per_s: int,
        *,
        log_dir_brokers: Collection[BrokerId] = (),
    ) -> DirectThrottle:
        """Throttle what these targets copy, before it starts or while it goes on (KIP-73, KIP-455).

        The replicas are added to their topics' lists, and each broker gets the rate, as leader and
        as follower. It is read back. What others have listed stays; a lower rate that is there
        holds. Nothing takes it back by itself: give what this returns to
        :meth:`clear_replication_throttle`, in a teardown task.

        :param targets: as in :meth:`alter_partition_reassignments`.
        :param rate_bytes_per_s: per broker and direction.
        :param log_dir_brokers: brokers whose copies between log dirs get the rate, too.
        :return: what was changed; ``to_json()`` is what a task returns for a later one.
        """
        limits = CopyLimits((), {-1: rate_bytes_per_s})
        with self._cluster() as cluster:
            self._require(cluster, Action.REASSIGN if targets else Action.MOVE_LOG_DIRS, limits)
            new_targets = _targets(targets)
            copies = wanted_copies(new_targets, read_targets(cluster, new_targets))
            of = [*new_targets, *(f"broker {broker}" for broker in sorted(log_dir_brokers))]
            call, rate = "set_replication_throttle", rate_bytes_per_s
            with changing(cluster, call, of, rate_bytes_per_s=rate) as change:
                throttle = set_direct_throttle(cluster, copies, rate, log_dir_brokers)
                change.note_done(len(throttle.changes), "changed")
            return throttle

    def clear_replication_throttle(
        self, throttle: DirectThrottle | Mapping[str, object]
    ) -> TakenBack:
        """Take back what :meth:`set_replication_throttle` has set. It may be called again.

        :param throttle: what that returned, or its ``to_json()``.
        :return: what is as before, and what another client has changed since, which stays.
        """
        direct_throttle = (
            DirectThrottle.from_json(throttle) if isinstance(throttle, Mapping) else throttle
        )
        of = [f"{each.resource} {each.key}" for each in direct_throttle.changes]
        with (
            self._cluster() as cluster,
            changing(cluster, "clear_replication_throttle", of, stops=True) as change,
        ):
            back = clear_direct_throttle(cluster, direct_throttle)
            change.note_done(len(back.restored), "put back")
        return back

    def create_partitions(
        self,
        totals: Mapping[str, int],
        assignments: Mapping[str, Sequence[Sequence[BrokerId]]] | None = None,
        *,
        validate_only: bool = False,
    ) -> dict[str, BrokerError | None]:
        """Give topics more partitions (KIP-195, KIP-179).

        :param totals: topic → how many partitions it has afterwards.
        :param assignments: topic → the replicas of each new partition, the preferred leader first.
            Without them the controller chooses.
        :param validate_only: only ask whether it would be done. No policy refuses that.
        :return: the controller's verdict per topic; None = done, or it would be.
        """
        with self._cluster() as cluster:
            if validate_only:
                return cluster.create_partitions(totals, assignments, validate_only=True)
            self._require(cluster, ADD_PARTITIONS)
            with changing(cluster, "create_partitions", totals, totals=dict(totals)) as change:
                verdicts = cluster.create_partitions(totals, assignments)
                change.note_answer(verdicts)
            return verdicts

    def elect_leaders(
        self, partitions: Collection[PartitionName]
    ) -> dict[TopicPartition, BrokerError | None]:
        """Have the preferred leader of each partition elected (KIP-460).

        :return: the verdict per partition; None = it leads, also where it did before.
        """
        with self._cluster() as cluster:
            self._require(cluster, Action.ELECT_PREFERRED)
            keys = [TopicPartition(*each) for each in partitions]
            with changing(cluster, "elect_leaders", keys) as change:
                verdicts = cluster.elect_preferred_leaders(keys)
                change.note_answer(verdicts)
            return verdicts

    @contextmanager
    def _cluster(self) -> Iterator[ClusterGateway]:
        with self.gateway(installation.settings(self.kafka_config_id)) as cluster:
            yield cluster

    def _require_own(
        self,
        cluster: ClusterGateway,
        targets: Targets,
        ongoing: Mapping[TopicPartition, OngoingReassignment],
        own_targets: Mapping[PartitionName, Sequence[BrokerId]],
        *,
        leave: bool,
    ) -> int:
        """See that only the caller's own is cancelled or replaced, or that there is leave.

        :return: how many reassignments are not known to be the caller's own.
        :raises NotOwnReassignmentError: there are some, and no leave.
        :raises PolicyError: there is leave, and the policy does not allow it.
        """
        if not ongoing:
            return 0
        own = {TopicPartition(*part): tuple(target) for part, target in own_targets.items()}
        plans = plans_in_flight(cluster.describe_cluster().cluster_id, ongoing)
        not_own = not_own_reassignments(targets, ongoing, own, plans or {})
        if not_own and not leave:
            raise NotOwnReassignmentError(not_own, plans_known=plans is not None)
        if not_own:
            self._require(cluster, CANCEL_FOREIGN)
        return len(not_own)

    def _require(
        self, cluster: ClusterGateway, action: str, limits: CopyLimits | None = None
    ) -> None:
        """See that the policy of the cluster allows this now.

        :raises PolicyError: it does not.
        :raises MisledError: the connection leads to another cluster than it is bound to.
        """
        cluster_id = cluster.describe_cluster().cluster_id
        with installation.open_ledger() as ledger:
            mismatch = bound.known_misled(ledger, self.kafka_config_id, cluster_id)
            if mismatch is not None:
                raise MisledError(mismatch)
            policy = policies.policy_of_cluster(ledger, cluster_id, self.kafka_config_id)
        if policy.approval:
            raise policy.error([PolicyRefusal(RefusedBy.HOOK_ASKS_NOBODY)])
        if limits is not None and limits.unthrottled and not policy.unthrottled:
            by = RefusedBy.HOOK_UNTHROTTLED
            raise policy.error([PolicyRefusal(by, unthrottled=limits.unthrottled)])
        rate = max(limits.rates.values(), default=None) if limits is not None else None
        policy.require(action, rate, utc_now())


def _targets(
    targets: Mapping[PartitionName, Sequence[BrokerId] | None],
) -> dict[TopicPartition, Sequence[BrokerId] | None]:
    return {TopicPartition(*partition): target for partition, target in targets.items()}
