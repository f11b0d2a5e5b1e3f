"""Where connections lead, and to which cluster each of them, and each entry, is bound."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from rehome.domain.run.event_kind import EventKind
from rehome.errors import PlanConflictError
from rehome.ledger.base.audit_entry import AuditEntry, Decided, Door
from rehome.ledger.base.authority_models import BINDINGS, CONNECTIONS
from rehome.ledger.base.database import Database
from rehome.ledger.stores.audit.entries import write_audit
from rehome.ledger.stores.events import REHOME, write_event

_POLICIES = (
    select(CONNECTIONS.c.connection, CONNECTIONS.c.policy)
    .where(CONNECTIONS.c.cluster_id == bindparam("of"))
    .order_by(CONNECTIONS.c.connection)
)
_HERE = CONNECTIONS.c.connection == bindparam("at")
_LEADS_TO = select(CONNECTIONS.c.cluster_id).where(_HERE)
_POLICY = select(CONNECTIONS.c.policy).where(_HERE)
_WINDOWLESS = select(CONNECTIONS.c.windowless_at).where(_HERE)
_SEEN = (
    update(CONNECTIONS)
    .where(_HERE)
    .values(cluster_id=bindparam("leads_to"), seen_at=bindparam("now"))
)
_BINDINGS = select(BINDINGS.c.kind, BINDINGS.c.name, BINDINGS.c.cluster_id)
_BOUND = select(BINDINGS.c.cluster_id).where(
    (BINDINGS.c.kind == bindparam("of")) & (BINDINGS.c.name == bindparam("named"))
)
_NEW_BINDING = insert(BINDINGS)
_NEW_CONNECTION = insert(CONNECTIONS)
_CHANGE = update(CONNECTIONS).where(_HERE)
_LEADS = select(CONNECTIONS.c.connection, CONNECTIONS.c.cluster_id).order_by(CONNECTIONS.c.seen_at)


class Bound(enum.StrEnum):
    """What is bound to a cluster. The values are in the ledger's rows: they never change."""

    CONNECTION = "connection"
    ENTRY = "entry"  # of the clusters file, by its name


@dataclass(frozen=True, slots=True)
class Binding:
    """To which cluster something is bound.

    :param bound_by: a person; or ``rehome``, at the first use.
    :param read_by: what has seen it lead there.
    """

    kind: Bound
    name: str
    cluster_id: str
    bound_at: datetime
    bound_by: str
    read_by: str


@dataclass(frozen=True, slots=True)
class Bindings:
    """All of them: name → id of the cluster.

    :param leads: connection → id of the cluster that it was last seen to lead to.
    """

    connections: Mapping[str, str]
    entries: Mapping[str, str]
    leads: Mapping[str, str]


class BindingStore(Database):
    """Connections and entries of the clusters file, each with the cluster that is its own."""

    def record_connection(self, connection: str, cluster_id: str, read_by: str = "") -> None:
        """Record which cluster a connection leads to by now. It is bound at the first time: to this
        cluster, or to the one that an earlier Rehome, which bound nothing, has seen it lead to.

        :param read_by: what has seen it, for people.
        """
        here, now = {"at": connection}, self._clock()
        with self.writing() as transaction:
            before = transaction.execute(_LEADS_TO, here).scalar()
            if before is None:
                row = {"connection": connection, "cluster_id": cluster_id, "seen_at": now}
                transaction.execute(_NEW_CONNECTION, row)
            else:
                transaction.execute(_SEEN, here | {"leads_to": cluster_id, "now": now})
            if before not in (None, cluster_id):
                text = f"connection {connection} leads to cluster {cluster_id}"
                kind = EventKind.LEADS_ELSEWHERE
                write_event(transaction, now, kind, text, cluster_id=before)
                detail = {"connection": connection, "leads_to": cluster_id}
                write_audit(transaction, now, _of_program(Decided.NO_LONGER_COUNTS, before, detail))
            first = before or cluster_id
            self._bind_first(transaction, Bound.CONNECTION, connection, first, read_by)

    def connections(self) -> dict[str, str]:
        """Connection → id of the cluster that it was last seen to lead to."""
        with self.reading() as transaction:
            return _leads(transaction)

    def record_policy(self, connection: str, policy: Mapping[str, Any]) -> None:
        """Record what the policy of a connection says of pace and approval, where it has changed.

        A connection that was never seen to lead anywhere is left out.
        """
        here: dict[str, Any] = {"at": connection}
        with self.reading() as transaction:
            policy_before = transaction.execute(_POLICY, here).scalar()
        if policy_before != dict(policy):
            with self.writing() as transaction:
                transaction.execute(_CHANGE, here | {"policy": dict(policy)})

    def record_windowless(self, connection: str) -> None:
        """Record that the cluster behind a connection has no windows; the first time stays."""
        if not self.was_windowless(connection):
            with self.writing() as transaction:
                values = {"at": connection, "windowless_at": self._clock()}
                transaction.execute(_CHANGE, values)

    def was_windowless(self, connection: str) -> bool:
        """Whether its cluster was ever seen to have no windows."""
        with self.reading() as transaction:
            windowless_at = transaction.execute(_WINDOWLESS, {"at": connection}).scalar()
        return windowless_at is not None

    def last_policies(self, cluster_id: str) -> dict[str, Mapping[str, Any] | None]:
        """Of each connection that leads to a cluster, as last seen: what its policy said of pace
        and approval, when it was last read; None = it never was.
        """
        with self.reading() as transaction:
            rows = transaction.execute(_POLICIES, {"of": cluster_id})
            return {row.connection: row.policy for row in rows}

    def forget_connection(self, connection: str) -> None:
        """A connection is gone: it leads nowhere, and its policy counts no more. What it is bound
        to stays.
        """
        here = CONNECTIONS.c.connection == connection
        with self.writing() as transaction:
            led_to = transaction.execute(select(CONNECTIONS.c.cluster_id).where(here)).scalar()
            if led_to is None:
                return
            transaction.execute(delete(CONNECTIONS).where(here))
            kind, text = EventKind.CONNECTION_GONE, f"connection {connection} was removed"
            now, detail = self._clock(), {"connection": connection, "leads_to": None}
            write_event(transaction, now, kind, text, cluster_id=led_to)
            write_audit(transaction, now, _of_program(Decided.NO_LONGER_COUNTS, led_to, detail))

    def bindings(self) -> Bindings:
        """What everything is bound to, and where it leads."""
        cluster_ids: dict[Bound, dict[str, str]] = {kind: {} for kind in Bound}
        with self.reading() as transaction:
            for kind, name, cluster_id in transaction.execute(_BINDINGS):
                cluster_ids[Bound(kind)][name] = cluster_id
            leads = _leads(transaction)
        return Bindings(cluster_ids[Bound.CONNECTION], cluster_ids[Bound.ENTRY], leads)

    def binding(self, kind: Bound, name: str) -> Binding | None:
        """One of them, with how it came about; None = it is bound to nothing yet."""
        here = (BINDINGS.c.kind == kind) & (BINDINGS.c.name == name)
        with self.reading() as transaction:
            row = transaction.execute(select(BINDINGS).where(here)).mappings().one_or_none()
        return None if row is None else Binding(**{**row, "kind": kind})

    def bind_entry(self, name: str, cluster_id: str, read_by: str = "") -> None:
        """Bind an entry of the clusters file at its first use; one that is bound stays so."""
        with self.reading() as transaction:
            if _bound_to(transaction, Bound.ENTRY, name) is not None:
                return
        with self.writing() as transaction:
            self._bind_first(transaction, Bound.ENTRY, name, cluster_id, read_by)

    def rebind(
        self,
        connection: str,
        entry: str | None,
        cluster_id: str,
        actor: str,
        *,
        user_id: str | None = None,
        address: str | None = None,
    ) -> None:
        """Bind a connection, and the entry that names it, to the cluster that it leads to by now.

        :param actor: name of the person who says that this is right.
        :param user_id, address: of that person, for the audit.
        :raises PlanConflictError: it leads to another cluster, as last seen.
        """
        chosen = {Bound.CONNECTION: connection, Bound.ENTRY: entry}
        with self.writing() as transaction:
            leads_to = _leads(transaction).get(connection)
            if leads_to != cluster_id:
                where = "nowhere that is known" if leads_to is None else f"to cluster {leads_to}"
                raise PlanConflictError(
                    f"Connection {connection} leads {where}, not to cluster {cluster_id}",
                    state_left="The connection stays bound as it was.",
                    next_step="Look at the page again, and decide anew.",
                )
            now = self._clock()
            for kind, name in chosen.items():
                before = None if name is None else _bound_to(transaction, kind, name)
                if name is None or before == cluster_id:
                    continue
                here = (BINDINGS.c.kind == kind) & (BINDINGS.c.name == name)
                transaction.execute(delete(BINDINGS).where(here))
                _insert(transaction, now, kind, name, cluster_id, actor, "the page")
                for about, text in (
                    (cluster_id, f"{kind} {name}, from cluster {before}"),
                    (before, f"{kind} {name} is bound to cluster {cluster_id} from now on"),
                ):
                    event = EventKind.BOUND
                    write_event(transaction, now, event, text, actor=actor, cluster_id=about)
                who = AuditEntry(Decided.REBOUND, Door.PAGE, user_id, actor, address)
                detail = {kind.value: name, "from": before, "to": cluster_id}
                write_audit(transaction, now, replace(who, cluster_id=cluster_id, detail=detail))

    def _bind_first(
        self, transaction: Connection, kind: Bound, name: str, cluster_id: str, read_by: str
    ) -> None:
        """Bind what is not bound, inside a transaction."""
        if _bound_to(transaction, kind, name) is not None:
            return
        now = self._clock()
        _insert(transaction, now, kind, name, cluster_id, REHOME, read_by)
        write_event(transaction, now, EventKind.BOUND, f"{kind} {name}", cluster_id=cluster_id)
        detail = {kind.value: name, "read_by": read_by}
        write_audit(transaction, now, _of_program(Decided.BOUND, cluster_id, detail))


def _insert(
    transaction: Connection,
    now: datetime,
    kind: Bound,
    name: str,
    cluster_id: str,
    actor: str,
    read_by: str,
) -> None:
    row = {"kind": kind, "name": name, "cluster_id": cluster_id, "bound_at": now}
    transaction.execute(_NEW_BINDING, {**row, "bound_by": actor, "read_by": read_by})


def _of_program(decision: Decided, cluster_id: str, detail: Mapping[str, Any]) -> AuditEntry:
    """What no person has decided."""
    return AuditEntry(decision, Door.TASK, cluster_id=cluster_id, detail=detail)


def _bound_to(transaction: Connection, kind: Bound, name: str) -> str | None:
    cluster_id: str | None = transaction.execute(_BOUND, {"of": kind, "named": name}).scalar()
    return cluster_id


def _leads(transaction: Connection) -> dict[str, str]:
    return {row.connection: row.cluster_id for row in transaction.execute(_LEADS)}
