"""Log dirs that a request empties, read from the snapshot independently of the planner."""

from __future__ import annotations

from rehome.domain.actions import Action
from rehome.domain.kafka import BrokerId, LogDirKey
from rehome.quality.facts.gate_input import Checked


def evacuated_log_dirs(checked: Checked) -> frozenset[LogDirKey]:
    """The log dirs by broker and path: the named ones; if none is named, the cordoned ones."""
    request = checked.request
    if request.action is not Action.EVACUATE_LOG_DIRS:
        return frozenset()
    if request.log_dirs:
        return frozenset((name.broker, name.path) for name in request.log_dirs)
    rows = checked.snapshot.log_dirs.to_pylist()
    live = {*checked.brokers[checked.live].tolist()}
    among = {*request.brokers} & live if request.brokers else live
    return frozenset(
        (row["broker"], row["log_dir"])
        for row in rows
        if row["cordoned"] and not row["offline"] and row["broker"] in among
    )


def emptied_brokers(checked: Checked) -> frozenset[BrokerId]:
    """Brokers that an evacuation leaves without a log dir for replicas: they end empty, as if they
    were drained.
    """
    leaving = evacuated_log_dirs(checked)
    left = {
        row["broker"]
        for row in checked.snapshot.log_dirs.to_pylist()
        if not row["offline"]
        and not row["cordoned"]
        and (row["broker"], row["log_dir"]) not in leaving
    }
    return frozenset(broker for broker, _ in leaving) - left
