"""Which replicas of a snapshot are offline, and how many each topic needs in sync."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rehome.cluster.snapshot.model import Snapshot

_Ints = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]


def offline_replicas(snapshot: Snapshot, ids: _Ints, live: _Mask) -> _Mask:
    """(N,) per row of the replicas: on a dead broker, or in a failed log dir of a live one.

    A broker does not list replicas in a failed log dir. So if it reports an offline log dir, the
    replicas that it does not list are taken to be in that one.

    :param ids: (B,) brokers, ascending; ``live``: (B,) which of them are alive.
    """
    replicas, log_dirs = snapshot.replicas, snapshot.log_dirs
    broker = replicas.column("broker").to_numpy()
    gone: _Mask = ~live[np.searchsorted(ids, broker)] if len(ids) else np.zeros(0, bool)
    failed = log_dirs.filter(log_dirs.column("offline")).column("broker").to_numpy()
    if len(failed):
        gone |= np.isin(broker, failed) & replicas.column("log_dir").is_null().to_numpy()
    return gone


def min_isr(snapshot: Snapshot, topics: tuple[str, ...]) -> _Ints:
    """(T,) ``min.insync.replicas`` of each topic; 1 where the snapshot does not know it."""
    table = snapshot.topics
    names, needed = (table.column(name).to_pylist() for name in ("topic", "min_insync_replicas"))
    min_isr_by_topic = dict(zip(names, needed, strict=True))
    return np.array([min_isr_by_topic.get(topic) or 1 for topic in topics], np.int64)
