"""The lease on a cluster, and the check that stops writes of a run that has lost it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, update

from rehome.errors import RehomeError
from rehome.ledger.base.models import LEASES


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a cluster.

    :param owner: who holds it: the id of the run that drives the plan, or what else acts on it.
    :param epoch: the fencing token. The run that takes the lease gets a higher one.
    :param expires_at: aware UTC; from then on any run may take it.
    :param ttl_s: how long each renewal makes it last.
    """

    cluster_id: str
    owner: str
    epoch: int
    expires_at: datetime
    ttl_s: float


_RENEWAL = (
    update(LEASES)
    .where(
        LEASES.c.cluster_id == bindparam("of"),
        LEASES.c.owner == bindparam("of_owner"),
        LEASES.c.epoch == bindparam("of_epoch"),
    )
    .values(expires_at=bindparam("until"))
)


class LeaseHeldError(RehomeError):
    """Another run holds the cluster."""


class LeaseLostError(RehomeError):
    """The lease was this process's own once; another run has taken it over since."""


def renew(connection: Connection, lease: Lease, now: datetime) -> None:
    """Make the lease last, inside a transaction that writes under it.

    Also one that has expired, as long as no other run has taken it.

    :raises LeaseLostError: it has another epoch by now; the transaction must not go on.
    """
    renewed = connection.execute(
        _RENEWAL,
        {
            "of": lease.cluster_id,
            "of_owner": lease.owner,
            "of_epoch": lease.epoch,
            "until": now + timedelta(seconds=lease.ttl_s),
        },
    )
    if renewed.rowcount != 1:
        raise LeaseLostError(
            f"{lease.owner} has lost the lease on cluster {lease.cluster_id} "
            f"(epoch {lease.epoch}): it did not renew it in time, and another run took over",
            state_left="It has written nothing since.",
            next_step="The run that took over goes on; look at the plan's events.",
        )
