"""Takes over what other clients have started, as a plan: the ledger first, then throttles."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from rehome.domain.actions import Action
from rehome.domain.clock import utc_now
from rehome.domain.plan.kafka_json import KafkaFiles
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.plan.plan_hash import seal
from rehome.domain.plan.summary import PlanSummary
from rehome.domain.run.event_kind import EventKind
from rehome.domain.text import count_text
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.foreign.cancel_foreign import refuse_set_meanwhile
from rehome.execution.foreign.named import NamedReassignments
from rehome.execution.governor.control_loop import first_rate
from rehome.execution.observation.observe import observe
from rehome.execution.throttle.set_up import ThrottleSetUp, set_up_throttle
from rehome.ledger.store import Ledger


def still_in_flight(
    selection: NamedReassignments, ledger: Ledger, cluster: OwnCluster
) -> tuple[Move, ...]:
    """What was named and has not ended, as moves from the replicas of before.

    :raises SetMeanwhileError: something else was set on one of them.
    :raises ClusterError: the cluster could not be read.
    """
    moves = [each.move for each in selection.reassignments]
    observation = observe(cluster, moves, utc_now(), in_flight=())
    refuse_set_meanwhile(selection, observation, ledger)
    return tuple(move for move in moves if move.partition in observation.ongoing)


def adopted_plan(
    plan_id: str,
    cluster_id: str,
    moves: Collection[Move],
    rate_bytes_per_s: int,
    ledger_id: str,
) -> Plan:
    """The plan that finishes these moves. No planner has made it: it is as another client wants it,
    and how it changes the balance and the racks of the cluster was not worked out.
    """
    to_move = sum(move.bytes_to_move for move in moves)
    summary = PlanSummary(
        plan_id=plan_id,
        plan_hash="",
        cluster_id=cluster_id,
        action=Action.REASSIGN.value,
        snapshot="",
        partitions=len(moves),
        replica_moves=sum(len(move.adding) for move in moves),
        leader_changes=sum(move.current[:1] != move.target[:1] for move in moves),
        bytes_to_move=to_move,
        lower_bound_bytes=to_move,
        rate_bytes_per_s=rate_bytes_per_s,
        predicted_s=None,
        rack_violations_before=None,
        rack_violations_after=None,
        brokers=(),
        ledger_id=ledger_id,
    )
    changes_factor = any(len(move.current) != len(move.target) for move in moves)
    plan = Plan(
        plan_id,
        cluster_id,
        Action.REASSIGN.value,
        tuple(moves),
        summary,
        allow_replication_factor_change=changes_factor,
    )
    return seal(KafkaFiles.of(plan.moves).with_digests(plan))


def adopt(
    plan: Plan,
    selection: NamedReassignments,
    ledger: Ledger,
    cluster: OwnCluster,
    rate_bytes_per_s: int,
    actor: str,
) -> ThrottleSetUp:
    """Make what is in flight the plan's, then throttle it. Nothing is asked of the controller. A
    retry changes nothing.

    :param rate_bytes_per_s: what brokers are to deliver, each and in each direction.
    :raises PlanConflictError: another plan holds the cluster; or something else was set meanwhile.
        Nothing was changed on the cluster.
    :raises RehomeError: a throttle was refused, or does not read back as set.
    """
    observation = observe(cluster, plan.moves, utc_now())
    mine = ledger.view_of_open(plan.plan_id).sent
    unsent = tuple(each for each in selection.reassignments if each.partition not in mine)
    refuse_set_meanwhile(replace(selection, reassignments=unsent), observation, ledger)
    ledger.claim(plan.plan_id)
    flying = [move for move in plan.moves if move.partition in observation.ongoing]
    before = {
        move.partition: replace(state, replicas=move.current)
        for move in flying
        if (state := observation.partitions.get(move.partition)) is not None
    }
    first = replace(observation, partitions={**observation.partitions, **before})
    ledger.admit(plan.plan_id, flying, first, first_rate(rate_bytes_per_s))
    ledger.mark_sent(plan.plan_id, [move.partition for move in flying])
    text = f"{count_text(len(flying), 'reassignment')} of another client"
    ledger.add_event(
        EventKind.ADOPTED, text, actor=actor, plan_id=plan.plan_id, cluster_id=plan.cluster_id
    )
    return set_up_throttle(plan, ledger, cluster, first_rate(rate_bytes_per_s), rate_bytes_per_s)
