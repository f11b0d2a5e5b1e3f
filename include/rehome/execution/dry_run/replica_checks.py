"""Brokers of a plan: what the controller does not check before it starts a copy."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rehome.cluster.snapshot.columns import has_inner_slash, rack_path
from rehome.domain.kafka import Broker, BrokerId
from rehome.domain.plan.failure_domains import weakened
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.request.pasted_reassignment import TakenFrom, taken_from
from rehome.domain.request.request import Action, ReassignmentRequest
from rehome.domain.run.findings import Finding, Severity
from rehome.domain.text import brokers_text, count_text
from rehome.execution.dry_run.cluster_state import ClusterState

_CHECK = "brokers"
REDUNDANCY_CHECK = "redundancy"
RACKS_CHECK = "racks"


def broker_findings(plan: Plan, now: ClusterState) -> Iterator[Finding]:
    """Destinations that could not take their copies, and brokers of the plan that do not answer.

    The controller accepts a dead broker that is registered, and one whose log dirs are all
    cordoned: on the one the copy would never end, on the other it is not wanted.
    """
    receiving: dict[BrokerId, list[Move]] = {}
    for move in plan.moves:
        for broker in move.needs_alive:
            if broker in move.adding or broker not in now.cluster.brokers:
                receiving.setdefault(broker, []).append(move)
    closed = _closed(now)
    for broker, moves in sorted(receiving.items()):
        if broker not in now.cluster.brokers:
            what, remedy = "is not alive", "Bring it back, or plan without it."
        elif broker in closed:
            what, remedy = closed[broker], "Open a log dir of it, or plan without it."
        else:
            continue
        named = ", ".join(str(move.partition) for move in moves[:3])
        more = f" and {len(moves) - 3} more" if len(moves) > 3 else ""
        yield _error(f"broker {broker}", f"{what}, and is to hold {named}{more}", remedy)
    involved = {broker for move in plan.moves for broker in (*move.current, *move.target)}
    for broker, error in now.log_dirs.missing.items():
        what = f"did not answer: {error.name}: {error.message}"
        if broker in involved:
            remedy = "Find out why, then run again."
            yield _error(f"broker {broker}", what, remedy, error.code)
        else:
            remedy = "No move of the plan needs it: the plan can go on without it."
            subject = f"broker {broker}"
            yield Finding(Severity.WARNING, _CHECK, subject, what, remedy, error.code)


def redundancy_findings(
    plan: Plan, request: ReassignmentRequest, now: ClusterState, *, refuse: bool
) -> Iterator[Finding]:
    """Partitions that end in fewer racks, or with fewer replicas, than they have.

    :param refuse: whether that is an error, as the setting ``refuse_fewer_domains`` says.
    """
    racks = {broker.id: rack_path(broker.rack) for broker in now.cluster.brokers.values()}
    for found in weakened(plan.moves, racks):
        asked = found.level == 0 and (
            request.action is Action.SET_REPLICATION_FACTOR
            or request.allow_replication_factor_change
        )
        usual = Severity.INFO if asked else Severity.WARNING
        yield Finding(
            Severity.ERROR if refuse and not asked else usual,
            REDUNDANCY_CHECK,
            "plan",
            str(found),
            "It was asked for."
            if asked
            else "Leave brokers of every rack to these topics, or accept that they outlive fewer "
            "failures.",
        )


def rack_findings(request: ReassignmentRequest, brokers: Collection[Broker]) -> Iterator[Finding]:
    """Racks that count for other than one may think: brokers that have none while others have one,
    and names with slashes in them that do not begin with one.

    :param brokers: that are alive.
    """
    if request.ignore_racks:
        return
    without = sorted(broker.id for broker in brokers if not rack_path(broker.rack))
    if without and len(without) < len(brokers):
        have, count = ("has", "counts") if len(without) == 1 else ("have", "count together")
        yield Finding(
            Severity.WARNING,
            RACKS_CHECK,
            brokers_text(without),
            f"{have} no rack while others do, and {count} as one more rack",
            "Set broker.rack there and restart, if they are not one place of their own.",
        )
    for rack in sorted({str(broker.rack) for broker in brokers if has_inner_slash(broker.rack)}):
        yield Finding(
            Severity.WARNING,
            RACKS_CHECK,
            f"rack {rack}",
            "does not begin with a slash: it is one rack of this name, without levels",
            f"If its parts are levels, name it /{rack} (broker.rack).",
        )


def _error(subject: str, message: str, remedy: str, code: int | None = None) -> Finding:
    return Finding(Severity.ERROR, _CHECK, subject, message, remedy, code)


def _closed(now: ClusterState) -> dict[BrokerId, str]:
    """Brokers that answered and have no log dir for new replicas, with the reason."""
    open_dirs: dict[BrokerId, int] = {}
    cordoned: set[BrokerId] = set()
    for log_dir in now.log_dirs.value:
        takes = log_dir.error is None and not log_dir.cordoned
        open_dirs[log_dir.broker] = open_dirs.get(log_dir.broker, 0) + takes
        if log_dir.cordoned:
            cordoned.add(log_dir.broker)
    return {
        broker: "has its log dirs cordoned" if broker in cordoned else "has every log dir offline"
        for broker, number in open_dirs.items()
        if not number
    }


def file_findings(request: ReassignmentRequest) -> Iterator[Finding]:
    """What was taken of what a person has pasted, where that was more than a reassignment."""
    if taken_from(request.reassignment) is TakenFrom.GENERATED:
        entries = (request.reassignment or {}).get("partitions", ())
        yield Finding(
            Severity.INFO,
            "reassignment",
            "plan",
            "the pasted output of kafka-reassign-partitions --generate holds two assignments; the "
            f"proposed one was taken, with {count_text(len(entries), 'partition')}",
            "The plan has its own way back: rollback.json.",
        )


def limit_findings(
    request: ReassignmentRequest, brokers: Collection[BrokerId]
) -> Iterator[Finding]:
    """Brokers that limits name and that are not alive, or were never there: plans go on without
    them, so that a set is smaller than it is meant to be.

    :param brokers: that are alive.
    """
    for item in request.broker_sets or ():
        gone = sorted({*item.brokers}.difference(brokers))
        if gone:
            yield _named(f"broker set {item.name}", gone)
    capped = sorted({*(request.caps.brokers if request.caps else ())}.difference(brokers))
    if capped:
        yield _named("caps", capped)


def _named(subject: str, gone: list[BrokerId]) -> Finding:
    are = "is" if len(gone) == 1 else "are"
    text = f"{brokers_text(gone)}, which it names, {are} not alive, or not of this cluster"
    return Finding(
        Severity.WARNING,
        "limits",
        subject,
        text,
        "Bring them back, or correct the setting or the parameter.",
    )


def step_findings(plan: Plan, request: ReassignmentRequest) -> Iterator[Finding]:
    """Partitions that get their new replicas in steps, and what they have in between."""
    most = request.max_new_replicas_at_once
    new = [len(move.adding) for move in plan.moves if most and len(move.adding) > most]
    if not most or not new:
        return
    yield Finding(
        Severity.INFO,
        "steps",
        "plan",
        f"{count_text(len(new), 'partition gets', 'partitions get')} new replicas in steps, of "
        f"{most} at once at most: up to {-(-max(new) // most)} steps",
        "Until its last step is done, a partition keeps its old replicas beside the new ones. A "
        "cancel takes all steps back, and copies nothing.",
    )
