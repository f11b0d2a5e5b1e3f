"""Requests outside of Airflow, with what the clusters file says of their cluster. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rehome.clusters.clusters_file import ClustersFile
from rehome.domain.request.limits import with_limits
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.presets import Filled
from rehome.domain.request.request import Preset, ReassignmentRequest
from rehome.domain.request.targets import with_targets
from rehome.errors import InvalidRequestError


def request_by(
    params: Mapping[str, Any], file: ClustersFile, now: datetime | None = None
) -> ReassignmentRequest:
    """The request of these parameters, with the targets, caps and broker sets of the cluster that
    its ``kafka_config_id`` leads to, where it states none of its own.

    :raises InvalidRequestError: lists every problem; the file has no such cluster.
    """
    if not file.clusters:
        return parse_request(params, now=now)
    connection = str(params.get("kafka_config_id") or "")
    entry = file.through(connection)
    if entry is None:
        subject = (
            f"kafka_config_id={connection!r}" if connection else "kafka_config_id is missing: it"
        )
        raise InvalidRequestError(
            [f"{subject} names no connection of the clusters file."],
            next_step="Set kafka_config_id to the connection that the clusters file has for the "
            "cluster, then ask again.",
        )
    filled = with_targets(Filled(params, Preset.NONE, {}, {}), entry.targets, {})
    request = parse_request(filled.params, now=now)
    return with_limits(request, entry.caps, entry.broker_sets)
