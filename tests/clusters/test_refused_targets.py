"""Targets that the policy beside them refuses are named where the file is read."""

from __future__ import annotations

import pytest

from rehome.clusters.clusters_file import read_clusters
from rehome.clusters.refused_targets import refused_target_notes


def _notes(entry: str) -> list[str]:
    return refused_target_notes(read_clusters(f"clusters: {{berlin: {{connection: x, {entry}}}}}"))


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        (
            "policy: {largest_throttle: 1000000}, targets: {throttle: 2MB/s}",
            "2000000 bytes per second is above the largest throttle, 1000000.",
        ),
        (
            "policy: {approval: true}, targets: {unthrottled: true}",
            "No plan may run without a throttle (unthrottled).",
        ),
        (
            'policy: {largest_throttle: 1000000}, targets: {throttle_by_broker: {"4": 2000000}}',
            "2000000 bytes per second of broker 4 (leader) is above largest_throttle, 1000000.",
        ),
    ],
)
def test_a_target_that_the_policy_refuses_is_named(entry: str, cause: str) -> None:
    assert _notes(entry)[0] == (
        f"clusters.berlin.targets: {cause} The policy of this cluster refuses every run that takes "
        "this target: change one of them."
    )


@pytest.mark.parametrize(
    "entry",
    [
        "policy: {largest_throttle: 1000000}, targets: {throttle: 1000000}",
        "policy: {largest_throttle: 1000000}, targets: {throttle: auto, tolerance: 0.05}",
        "policy: {unthrottled: true}, targets: {unthrottled: true}",
        "targets: {unthrottled: true}",
        "policy: {approval: true}",
    ],
)
def test_a_target_that_it_allows_or_that_no_policy_here_speaks_of_is_not(entry: str) -> None:
    assert _notes(entry) == []
