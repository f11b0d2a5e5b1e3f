"""Runs of watching whose plan was refused: what is recorded of them, and when they start again."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from rehome import installation
from rehome.fleet import clusters, watched_through
from rehome.hooks.cluster import KafkaClusterHook

if TYPE_CHECKING:
    from include.ledger.store import Ledger
    from include.ledger.stores.watched.starts import StartRecord
    from include.watching.finding import About, FindingRecord
    from include.watching.kinds import FindingKind
    from include.watching.refusal import Refusal, RefusedBy, RefusedRun
    from include.watching.stays_open import StaysOpen

log = logging.getLogger(__name__)


def record(
    run: Any,
    connection: str,
    by: RefusedBy,
    reasons: Sequence[str],
    snapshot_uri: str,
    *,
    repeats: bool = True,
) -> None:
    """Record why a run's plan was refused, if watching has started the run. Where that cannot be
    recorded, the log says so, and the run has failed like any other.

    :param snapshot_uri: of the snapshot that the plan was made on.
    :param repeats: whether a snapshot that shows the same is refused again, where ``by`` goes by
        the snapshot.
    """
    from include.cluster.snapshot.layout_digest import layout_digest
    from include.warehouse import read_snapshot
    from include.watching.refusal import BY_SNAPSHOT, Refusal

    try:
        with installation.open_ledger() as ledger:
            if ledger.watch_start(run.dag_id, run.run_id) is None:
                return
            lasts = repeats and by in BY_SNAPSHOT
            layout = ""
            if lasts:
                left_empty = (getattr(run, "conf", None) or {}).get("exclude_brokers")
                layout = _layout(layout_digest(read_snapshot(snapshot_uri)), left_empty)
            whys = tuple(reason.rstrip(".") for reason in reasons)  # they become parts of sentences
            refusal = Refusal(by, whys, layout, settings_digest(connection))
            ledger.record_refusal(run.dag_id, run.run_id, refusal)
    except Exception as error:  # noqa: BLE001 - whatever it is, the task has to say why it refuses
        log.error("Why run %s was refused could not be recorded: %r", run.run_id, error)


def _layout(of_snapshot: str, left_empty: Sequence[int] | None) -> str:
    """What a plan goes by, apart from settings: a broker that was drained may be switched off, or
    be filled again, between the snapshot that a run is started by and its own.
    """
    brokers = " ".join(str(each) for each in left_empty or ())
    return f"{of_snapshot} without {brokers}" if brokers else of_snapshot


def withdraw(run: Any, ledger: Ledger) -> None:
    """A run that was refused, and cleared, has made a plan, or goes on with a paused one."""
    start = ledger.watch_start(run.dag_id, run.run_id)
    if start is not None and start.refusal is not None:
        ledger.record_refusal(run.dag_id, run.run_id, None)


def settings_digest(connection: str) -> str:
    """A digest of all that a person can set for what watching starts on a cluster. It is the same
    in every process.
    """
    parts = (
        installation.settings(connection),
        watched_through.rules_for(connection),
        clusters.through(connection),
        KafkaClusterHook(connection).policy,
    )
    return hashlib.sha256(repr([_ordered(each) for each in parts]).encode()).hexdigest()


def _ordered(value: Any) -> Any:
    """A value without sets, of which each process has an order of its own."""
    if isinstance(value, BaseModel):
        return _ordered(dict(value))
    if is_dataclass(value):
        return [_ordered(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        return sorted((str(key), repr(_ordered(each))) for key, each in value.items())
    if isinstance(value, Set):
        return sorted(repr(_ordered(each)) for each in value)
    if isinstance(value, list | tuple):
        return [_ordered(each) for each in value]
    return value


def newest_refused(
    starts: Sequence[StartRecord], kind: FindingKind, subject: str
) -> RefusedRun | None:
    """The newest run for a subject as a refused one, since whenever its finding is open; None = it
    was not refused, or has not ended.

    :param starts: of the cluster, the newest first.
    """
    from include.watching.refusal import RefusedBy, RefusedRun

    own = [start for start in starts if (start.kind, start.subject) == (kind, subject)]
    newest = own[0] if own else None
    if newest is None or newest.ended_at is None or not newest.failed:
        return None
    refusal = refusal_of(newest)
    if refusal is None or refusal.by is RefusedBy.OF_PAUSED:  # that has moved something before
        return None
    in_a_row = 0
    for start in own:
        earlier = refusal_of(start)
        if earlier is None or earlier.settings != refusal.settings:
            break
        in_a_row += 1
    return RefusedRun(refusal, newest.ended_at, in_a_row)


def refusal_of(start: StartRecord) -> Refusal | None:
    """Why a run has made no plan that could be carried out; None = it has, or that is not known.

    Nobody has seen a proposal that failed before it was made. A heal that fails is tried again in
    any case, and the circuit breaker counts it.
    """
    from include.watching.kinds import WatchPolicy
    from include.watching.refusal import Refusal, RefusedBy

    if start.refusal is not None:
        return start.refusal
    if start.policy is WatchPolicy.PROPOSE and start.failed and start.plan_id is None:
        return Refusal(RefusedBy.CRASH, (), "", "")
    return None


def of_run(ledger: Ledger, dag_id: str, run_id: str) -> StaysOpen | None:
    """Why what a run was started for stays open, if the run has just been refused."""
    start = ledger.watch_start(dag_id, run_id)
    if start is None or start.refusal is None:
        return None
    return stays_open(ledger.watch_starts(start.cluster_id), start.kind, start.subject)


def stays_open(starts: Sequence[StartRecord], kind: FindingKind, subject: str) -> StaysOpen | None:
    """Why a finding is open still whose newest plan was refused; None = none was."""
    from include.watching.stays_open import RunOutcome, StaysOpen
    from rehome.fleet.watch_runs import REASONS_NAMED

    refused = newest_refused(starts, kind, subject)
    if refused is None:
        return None
    newest = next(start for start in starts if (start.kind, start.subject) == (kind, subject))
    reasons = refused.refusal.reasons
    return StaysOpen(
        RunOutcome.REFUSED,
        newest.policy,
        newest.plan_id or "",
        reasons[:REASONS_NAMED],
        len(reasons[REASONS_NAMED:]),
        refused,
    )


def held(
    starts: Sequence[StartRecord],
    findings: Sequence[FindingRecord],
    snapshot_uri: str,
    connection: str,
    now: datetime,
    drained: Collection[int] = (),
) -> frozenset[About]:
    """Open findings whose newest plan was refused, or whose proposal failed before it was made, and
    for which none is to be made now.

    :param snapshot_uri: of the newest snapshot; read only if one was refused.
    :param drained: brokers that nothing fills which is started now.
    """
    from include.cluster.snapshot.layout_digest import layout_digest
    from include.warehouse import read_snapshot
    from include.watching.remedy import action_of, excluded

    found = {each.about: newest_refused(starts, each.kind, each.subject) for each in findings}
    refused = {about: each for about, each in found.items() if each is not None}
    if not refused:
        return frozenset()
    settings, layout = settings_digest(connection), ""
    if any(each.until_changed for each in refused.values()):
        layout = layout_digest(read_snapshot(snapshot_uri))
    targets = clusters.targets_through(connection)
    return frozenset(
        about
        for about, each in refused.items()
        if each.holds(
            _layout(layout, excluded(action_of(*about[:2]), targets, drained)), settings, now
        )
    )
