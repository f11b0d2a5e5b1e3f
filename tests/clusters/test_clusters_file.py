"""The clusters file: read whole or refused whole, with every problem and its place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rehome.clusters.clusters_file import (
    NO_FILE,
    ClustersFile,
    ClustersFileError,
    clusters_of,
    read_clusters,
)
from rehome.domain.clock import utc_now
from rehome.domain.request.param_maps import rates_by_broker
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.presets import Filled, fill_in
from rehome.domain.request.request import Preset
from rehome.domain.request.targets import target_problems, with_targets
from rehome.domain.run.askers import Askers
from rehome.execution.access.connection_policy import PolicyError
from rehome.params import FORM_DEFAULTS
from rehome.settings import Settings

GOOD = """
clusters:
  berlin:
    connection: kafka_berlin
    policy: {approval: true, largest_throttle: 50000000}
    windows:
      - {cron: "0 1 * * *", hours: 4, timezone: Europe/Berlin}
      - {cron: "0 13 * * 6", hours: 0.5}
    targets: {tolerance: 0.05, exclude_topics: ["audit-*"], tolerances: {topic_spread: 0.3}}
    caps: {default: {replicas: 4000}}
    broker_sets: [{name: fast, topics: ["orders*"], brokers: [1, 2]}]
    settings: {max_partitions_in_flight: 50, poll_interval_s: 2}
  oslo:
    connection: kafka_default
"""
BAD = """
cluster: berlin
clusters:
  Berlin!: {connection: a}
  oslo:
    conection: a
    policy: {aproval: true, largest_throttle: 0}
    windows:
      - {cron: "at night", hours: 4}
      - {from: "2030-01-15T01:00:00Z", until: "2030-01-16T01:00:00Z"}
      - nightly
      - {cron: "0 0 30 2 *", hours: 4}
      - {cron: "R 1 * * *", hours: 4}
    watch: {grace_s: 1.0e+300}
    targets: {tolerance: 7, action: drain, tolerence: 1}
    caps: {default: {replicas: -1}}
    broker_sets: [{name: fast, topics: [orders]}]
    settings: {max_partitions_in_flight: 0, warehouse: "s3://x", wake: 3}
  rome: {connection: 3}
  bonn: 4
"""


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(ClustersFileError) as refused:
        read_clusters(text)
    return refused.value.problems


def test_everything_of_a_cluster_is_read() -> None:
    found = read_clusters(GOOD)
    berlin = found.clusters["berlin"]
    assert found.through("kafka_berlin") is berlin
    assert found.through("kafka_default") is found.clusters["oslo"]
    assert found.through("another") is None
    assert berlin.policy is not None
    assert (berlin.policy.approval, berlin.policy.connection) == (True, "kafka_berlin")
    with pytest.raises(PolicyError, match="have the cluster's policy in the clusters file changed"):
        berlin.policy.require_approver(None, Askers("ann"))
    assert [window.duration for window in berlin.windows] == [
        timedelta(hours=4),
        timedelta(minutes=30),
    ]
    assert berlin.targets["tolerance"] == 0.05
    assert berlin.caps.default.replicas == 4000
    assert berlin.broker_sets[0].brokers == (1, 2)
    assert berlin.settings == {"max_partitions_in_flight": 50, "poll_interval_s": 2}


def test_every_problem_is_named_with_its_place() -> None:
    found = problems(BAD)
    expected = {
        "cluster: there is no such key; known: clusters.",
        "clusters.Berlin!: is no name of a cluster",
        "clusters.oslo.connection: is needed.",
        "clusters.oslo.conection: there is no such key; known: connection, policy, windows",
        "clusters.oslo.policy: rehome.policy has no key 'aproval'",
        "clusters.oslo.policy: rehome.policy: largest_throttle=0 is less than 1.",
        "clusters.oslo.windows[0]: has cron='at night'",
        "clusters.oslo.windows[1]: opens once",
        "clusters.oslo.windows[2]: is not a JSON object",
        "clusters.oslo.windows[3]: has cron='0 0 30 2 *', which has no date: such a window never",
        "clusters.oslo.windows[4]: has cron='R 1 * * *', which has fields of random value",
        "clusters.oslo.watch: watch: grace_s=1e+300: Input should be less than or equal to",
        "clusters.oslo.targets: action says what one run is for",
        "clusters.oslo.targets: Unknown parameter 'tolerence'",
        "clusters.oslo.targets: tolerance=7 is not a fraction",
        "clusters.oslo.caps: caps.default.replicas: ",
        "clusters.oslo.broker_sets: broker_sets.0.brokers: ",
        "clusters.oslo.settings: Setting warehouse holds for all clusters",
        "clusters.oslo.settings: Setting max_partitions_in_flight=0 is not",
        "clusters.oslo.settings: Unknown setting 'wake'",
        "clusters.rome.connection: input should be a valid string",
        "clusters.bonn: ",
    }
    assert len(found) == len(expected)
    for begins in expected:
        assert any(problem.startswith(begins) for problem in found), (begins, found)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "clusters:\n  a: {connection: x}\n  b: {connection: x}\n",
            "clusters.b.connection: x is that of a, too.",
        ),
        (
            "clusters:\n  a: {connection: x}\n  b: {connection: y}\n  a: {connection: z}\n",
            "clusters.a: stands in line 2 and in line 4.",
        ),
        ("- a\n", "It has no key clusters, with a mapping of names to clusters."),
        ("", "It has no key clusters, with a mapping of names to clusters."),
    ],
)
def test_a_value_that_would_be_lost_silently_is_a_problem(text: str, problem: str) -> None:
    assert problems(text) == (problem,)


def test_a_file_is_read_anew_when_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "clusters.yaml"
    settings = Settings(clusters_file=str(path))
    with pytest.raises(ClustersFileError, match=r"clusters\.yaml cannot be used:\n- It cannot be"):
        clusters_of(settings)
    path.write_text("clusters: {a: {connection: x}}")
    assert clusters_of(settings).through("x") is not None
    path.write_text("clusters: {a: {connection: [}}")
    with pytest.raises(ClustersFileError, match="It is no YAML"):
        clusters_of(settings)
    path.write_text("clusters: &a {x: *a}")
    with pytest.raises(ClustersFileError, match="nested without end"):
        clusters_of(settings)
    with pytest.raises(ClustersFileError, match="It cannot be read: Is a directory"):
        clusters_of(Settings(clusters_file=str(tmp_path)))
    path.write_text("clusters: {a: {connection: y}}")
    os.utime(path, (1, 1))
    assert clusters_of(settings).through("y") is not None
    assert clusters_of(Settings()) is NO_FILE == ClustersFile()


DEFAULTS = {"action": "rebalance", "tolerance": 0.02, "throttle": "auto", "weights": None}


TARGETS = {"tolerance": 0.1, "throttle": 7000, "weights": {"1": 2}, "tolerances": {"leaders": 1}}


def asked(targets: Mapping[str, Any] = TARGETS, **params: object) -> Filled:
    return with_targets(fill_in({**DEFAULTS, **params}, DEFAULTS, None), targets, DEFAULTS)  # type: ignore[arg-type]


def test_targets_fill_what_neither_a_person_nor_a_preset_has_chosen() -> None:
    found = asked(tolerance=0.3)
    assert found.params == {
        "action": "rebalance",
        "tolerance": 0.3,
        "throttle": 7000,
        "weights": {"1": 2},
        "tolerances": {"leaders": 1},
    }
    assert "The cluster's targets set throttle=7000, weights=" in found.texts
    gently = asked(preset=Preset.DRAIN_GENTLY.value, action="rebalance")
    assert gently.params["throttle"] == 20_000_000


def test_targets_are_taken_by_their_former_words_and_kept_by_the_present_ones() -> None:
    entry = "{connection: a, targets: {on_window_end: drain}}"
    found = read_clusters(f"clusters: {{berlin: {entry}}}").clusters["berlin"]
    assert found.targets == {"on_window_end": "finish"}


def test_targets_that_an_action_has_no_use_for_are_left_out() -> None:
    drain = asked(action="drain")
    assert "tolerances" not in drain.params
    assert drain.params["weights"] == {"1": 2}
    assert asked(action="balance_leaders").params["weights"] is None


def test_targets_about_the_throttle_never_contradict_what_was_chosen() -> None:
    """Nor does a plan that was made with a throttle go on without one."""
    free = {"unthrottled": True}
    assert asked(action="drain", targets=free).params["unthrottled"]
    assert not asked(action="drain", targets=free, throttle=5000).params.get("unthrottled")
    goes_on = asked(action="rebalance", targets=free, plan_id="p", throttle="auto")
    assert not goes_on.params.get("unthrottled")
    chosen = asked(action="drain", targets={"throttle": 7000}, unthrottled=True)
    assert chosen.params.get("throttle") in (None, "auto"), "else the run would be refused"
    assert not list(target_problems(free))
    (problem,) = target_problems(free | {"throttle": 7000})
    assert problem.endswith("every run would be refused.")
    (problem,) = target_problems(free | {"throttle_by_broker": {"1": 7000}})
    assert problem.endswith("every run would be refused.")


RATES_OF_FILE = """
clusters:
  berlin:
    connection: a
    targets: {throttle_by_broker: {1: {leader: 5 MB/s, follower: 2000000}, 4: 30 MB/s}}
"""


def test_rates_of_single_brokers_are_targets_as_they_are_parameters_of_a_run() -> None:
    targets = read_clusters(RATES_OF_FILE).clusters["berlin"].targets
    filled_in = asked(targets).params["throttle_by_broker"]
    assert rates_by_broker(filled_in).to_json() == {
        "1": {"leader": 5_000_000, "follower": 2_000_000},
        "4": {"leader": 30_000_000, "follower": 30_000_000},
    }
    own = {"2": 9_000_000}
    assert asked(targets, throttle_by_broker=own).params["throttle_by_broker"] == own
    wrong = RATES_OF_FILE.replace("5 MB/s", "5").replace("follower", "follows")
    (problem,) = problems(wrong)
    assert problem.startswith("clusters.berlin.targets: throttle_by_broker of 1: holds {")
    assert problem.endswith("which is neither a rate nor rates of leader and follower.")


@pytest.mark.parametrize("chosen", ["20 MB/s", 20_000_000])
def test_no_target_of_a_single_broker_is_above_a_throttle_that_was_chosen(chosen: Any) -> None:
    targets = read_clusters(RATES_OF_FILE).clusters["berlin"].targets
    assert asked(targets, throttle=chosen).params["throttle_by_broker"] == {
        "1": {"leader": 5_000_000, "follower": 2_000_000},
        "4": {"leader": 20_000_000, "follower": 20_000_000},
    }
    faster = asked({**targets, "throttle": 10_000_000}).params
    assert rates_by_broker(faster["throttle_by_broker"]).leader[4] == 30_000_000


@pytest.mark.parametrize("choice", ["unthrottled", "export"])
def test_targets_of_single_brokers_are_left_out_where_a_run_can_have_none(choice: str) -> None:
    targets = read_clusters(RATES_OF_FILE).clusters["berlin"].targets
    params = fill_in({**FORM_DEFAULTS, "action": "rebalance", choice: True}, FORM_DEFAULTS, utc_now)
    found = with_targets(params, targets, FORM_DEFAULTS)
    assert not parse_request({**found.params, "dry_run": True}).throttle_by_broker


def test_a_plan_that_goes_on_gets_no_rates_of_targets_after_a_person_has_removed_its_own() -> None:
    """Control says "none any more" by an empty value; a form that was left alone sends null."""
    targets = read_clusters(RATES_OF_FILE).clusters["berlin"].targets
    run = {**FORM_DEFAULTS, "action": "rebalance", "plan_id": "p1", "throttle_by_broker": {}}
    found = with_targets(fill_in(run, FORM_DEFAULTS, utc_now), targets, FORM_DEFAULTS)
    assert found.params["throttle_by_broker"] == {}


def test_a_target_unthrottled_refuses_no_run_that_names_rates_of_single_brokers() -> None:
    run = {**FORM_DEFAULTS, "action": "rebalance", "throttle_by_broker": {"4": 5_000_000}}
    params = fill_in(run, FORM_DEFAULTS, utc_now)
    found = with_targets(params, {"unthrottled": True}, FORM_DEFAULTS)
    request = parse_request({**found.params, "dry_run": True})
    assert not request.unthrottled
    assert request.throttle_by_broker.brokers
