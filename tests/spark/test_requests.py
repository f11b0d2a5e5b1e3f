"""Requests of the jobs on the command line: by the clusters file, and with options of a cluster."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import pytest

from rehome.domain.request.limits import caps_to_json
from rehome.errors import InvalidRequestError
from spark_jobs import fleet_requests
from spark_jobs.gated_plan import read_request

FILE = """
clusters:
  berlin:
    connection: kafka_berlin
    targets: {tolerance: 0.25, replication_factor: 3}
    caps: {default: {replicas: 40}}
    broker_sets: [{name: fast, topics: ["orders*"], brokers: [1, 2]}]
"""
BERLIN = {"action": "rebalance", "kafka_config_id": "kafka_berlin"}


@pytest.fixture
def clusters(tmp_path: Path) -> str:
    path = tmp_path / "clusters.yaml"
    path.write_text(FILE.replace(", replication_factor: 3", ""))
    return str(path)


def write(directory: Path, content: Any) -> str:
    path = directory / "request.json"
    path.write_text(json.dumps(content))
    return str(path)


def test_the_clusters_file_fills_in_what_the_request_leaves_open(
    tmp_path: Path, clusters: str
) -> None:
    request = read_request(write(tmp_path, BERLIN), clusters)
    assert request.tolerance == 0.25
    assert request.caps is not None
    assert caps_to_json(request.caps) == {"default": {"replicas": 40}}
    assert [each.name for each in request.broker_sets or ()] == ["fast"]
    own = {**BERLIN, "tolerance": 0.1, "caps": {}, "broker_sets": []}
    request = read_request(write(tmp_path, own), clusters)
    assert (request.tolerance, bool(request.caps), request.broker_sets) == (0.1, False, ())
    assert read_request(write(tmp_path, BERLIN)).caps is None, "no file is given"


def test_a_file_of_gigabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, BERLIN)
    os.truncate(path, 2**31)  # it takes no room on the disk
    with pytest.raises(InvalidRequestError, match=r"it has 2\.15 GB, and files of up to 500 MB"):
        read_request(path)


@pytest.mark.parametrize("named", [{}, {"kafka_config_id": "kafka_oslo"}])
def test_a_request_of_no_cluster_of_the_file_is_refused(
    tmp_path: Path, clusters: str, named: dict[str, str]
) -> None:
    path = write(tmp_path, {"action": "rebalance", **named})
    with pytest.raises(InvalidRequestError, match="no connection of the clusters file"):
        read_request(path, clusters)


def test_a_broken_clusters_file_is_refused_with_every_problem(tmp_path: Path) -> None:
    broken = tmp_path / "clusters.yaml"
    broken.write_text(FILE)
    with pytest.raises(InvalidRequestError, match=r"clusters\.berlin\.targets: replication_factor"):
        read_request(write(tmp_path, BERLIN), str(broken))


def test_a_cluster_of_a_fleet_has_its_own_options_and_limits(tmp_path: Path, clusters: str) -> None:
    content = {
        "clusters": {"a": BERLIN, "b": BERLIN, "c": BERLIN},
        "options": {"a": {"max_snapshot_age_s": 9.0}, "c": {"max_age": 1}},
    }
    job = argparse.Namespace(
        request=write(tmp_path, content), clusters_file=clusters, max_snapshot_age_s=60.0
    )
    request, options = fleet_requests.read("a", job)
    assert request.tolerance == 0.25
    assert options.max_snapshot_age_s == 9.0
    assert fleet_requests.read("b", job)[1].max_snapshot_age_s == 60.0
    with pytest.raises(InvalidRequestError, match="unknown options for c: max_age; known"):
        fleet_requests.read("c", job)
