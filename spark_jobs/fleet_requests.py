"""What is asked for each cluster of a fleet: its request, and options of its own."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.errors import InvalidRequestError
from spark_jobs.gated_plan import read_parameters, request_of

OWN = (
    *("rate_bytes_per_s", "throttle_efficiency", "reaction_s", "max_partitions_in_flight"),
    *("small_bytes", "min_free_disk_fraction", "max_snapshot_age_s"),
    *("history_days", "min_history_hours", "forecast_days"),
)
"""Options that a cluster may have of its own, under ``options`` in the file of requests."""


def read(
    cluster_id: str, options: argparse.Namespace
) -> tuple[ReassignmentRequest, argparse.Namespace]:
    """What is asked for a cluster, and the job's options with the cluster's own.

    :raises InvalidRequestError: lists every problem.
    """
    path = options.request
    content = read_parameters(path)
    own: Mapping[str, Any] = {}
    if "clusters" in content:
        own = content.get("options", {}).get(cluster_id, {})
        content = content["clusters"].get(cluster_id)
        if content is None:
            raise InvalidRequestError([f"{path} has no request for {cluster_id}."])
    unknown = sorted(set(own) - set(OWN))
    if unknown:
        unknown_ones = f"{path} has unknown options for {cluster_id}: {', '.join(unknown)}"
        raise InvalidRequestError([f"{unknown_ones}; known: {', '.join(OWN)}."])
    request = request_of(content, options.clusters_file)
    if request.action is Action.ROLLBACK:
        raise InvalidRequestError(["A rollback is planned by spark_jobs/plan.py, plan by plan."])
    return request, argparse.Namespace(**{**vars(options), **own})
