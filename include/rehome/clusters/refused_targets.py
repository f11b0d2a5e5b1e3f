"""Targets of a cluster that its own policy refuses, named where the file is read. Pure."""

from __future__ import annotations

from rehome.clusters.clusters_file import ClustersFile
from rehome.domain.request.parameters import ReassignmentParams
from rehome.domain.request.validation import read_params
from rehome.execution.access.words.policy_words import refusal_text


def refused_target_notes(file: ClustersFile) -> list[str]:
    """Which clusters' targets no run may have by the policy beside them, a text for each cause.

    A policy that stands in the connection is not known here: each run compares with it.
    """
    notes = []
    for name, entry in file.clusters.items():
        if entry.policy is None or not entry.targets:
            continue
        pace = read_params(ReassignmentParams, dict(entry.targets)).values
        refusals = entry.policy.refused_pace(
            pace.throttle if isinstance(pace.throttle, int) else None,
            unthrottled=pace.unthrottled,
            by_broker=pace.throttle_by_broker,
        )
        notes += [
            f"clusters.{name}.targets: {refusal_text(cause)} The policy of this cluster refuses "
            "every run that takes this target: change one of them."
            for cause in refusals
        ]
    return notes
