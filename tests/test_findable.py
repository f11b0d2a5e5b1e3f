"""Where the tests of a module are: in a file of its name, or in the one that a table names.

The tests of ``include/planning/search/shed.py`` are ``tests/planning/search/test_shed.py`` or
``test_shed_….py`` beside it. Those of ``plugins/rehome/`` are in ``tests/plugins/``, those of its
page in ``tests/ui/``. Tests of a large module may have a folder of its name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from tests.imports import imports_of

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"

TESTED_IN = """
    alerts/test_approval_reminders: alert due_alerts
    alerts/test_catalog: kinds
    alerts/test_channels: message
    alerts/test_finding_alerts: watching/finding_text
    cluster/clients/test_clients: librdkafka
    cluster/connection/test_settings_of_connection: keys
    cluster/interface/test_rights: port
    cluster/snapshot/test_take_on_brokers: columns model
    cluster/test_gateway: cluster/calls/configs cluster/messages/admin cluster/messages/configs
        cluster/messages/metadata
    cluster/test_gateway_faults: cluster/interface/errors
    clusters/test_clusters_file: yaml_text
    dags/actions/test_add_partitions: execution/create_partitions plugins/operators/add_partitions
        reporting/added_partitions
    dags/drain/test_drain_means_empty: plugins/operators/completion/drained
    dags/progress/test_progress_sensor: plugins/sensors/reassignment
    dags/scheduled/test_scheduled: plugins/fleet/cluster_dag_texts
    dags/test_graph: plugins/task_graph plugins/task_texts
    dags/test_reassign_partitions: plugins/operators/completion/verify plugins/operators/dry_run
        plugins/operators/execute plugins/operators/snapshot plugins/spark_job
    dags/throttle/test_auto_throttle_runs: plugins/operators/throttle
    domain/plan/test_kafka_json: move
    domain/plan/test_move_table: move_columns moves_by_partition quality/facts/plan_hash
    domain/plan/test_plan_files: infeasible infeasible_text plan_hash summary
    domain/request/test_cluster_values: limits targets
    domain/request/test_request: param_types parameters parse_request validation
        domain/request/fields/balance domain/request/fields/choices domain/request/fields/shared
        domain/request/fields/types
    execution/access/test_connection_policy: open_windows progress_timeout domain/run/askers
    execution/admission/test_admit: backlog waits domain/disks domain/run/run_policy
    execution/admission/test_slots: domain/run/observation
    execution/advance/test_slow_clusters: execution/throttle/configs
    execution/completion/test_drained: domain/kafka
    execution/control/test_approval_terms: domain/run/approval_terms
    execution/dry_run/test_airflow_times: result domain/run/timing domain/time_range
    execution/dry_run/test_auto_rate: cluster_state execution/policy_from_request
    execution/dry_run/test_disk_headroom: domain/run/findings
    execution/dry_run/test_dry_run_on_brokers: inflow isr_checks throttle_checks without_rights
    execution/governor/test_control_loop: measured_rate domain/run/flows
    execution/governor/test_control_loop_simulated: execution/simulation/quota
    execution/observation/log_dirs/test_log_dir_copies: execution/observation/log_dir_copies
    execution/observation/test_cut_off_broker_on_brokers: drift
    execution/observation/test_observe: cluster/calls/fresh_metadata
    execution/progress/test_projection: execution/admission/fair_share
    execution/simulation/test_simulator_properties: cluster journal
    execution/test_decide: actions
    execution/test_poll: execution/observation/waiting_metadata
    execution/throttle/test_keys: domain/configs
    execution/throttle/test_rate_scope_on_brokers: set_again
    execution/throttle/test_set_up_on_brokers: plan_throttle ledger/stores/throttles
    execution/throttle/test_throttle_properties: clear still_needed
    ledger/base/test_database: identity models ledger/store
    ledger/stores/test_alerts: events ledger/base/alert_records
    ledger/stores/test_leases: ledger/base/fencing ledger/base/records
    ledger/stores/test_moves: rates
    ledger/stores/test_pages: planned_moves samples domain/run/progress ledger/base/paging
    ledger/stores/test_plans: domain/run/states
    load_history/test_daily_rollups: retention
    load_history/test_intervals: key_codes log_readings
    load_history/test_known_rates: forecast
    local/test_airflow_settings: /airflow_settings
    local/test_spark_archive: /packaging
    metrics/test_monitoring_files: naming statsd_mapping
    metrics/test_readings: catalog domain/run/ledger_view
    page/test_cluster_view: execution/throttle/foreign
    page/test_fleet_lines: cluster_brokers
    planning/actions/test_drain: placement_costs
    planning/actions/test_fix_offline_replicas: planning/model/health
    planning/actions/test_move_log_dirs: exhaustive_search planning/model/log_dir_arrays
    planning/actions/test_placing: balance_leaders reassign repair_racks set_replication_factor
        planning/placement/decrease_replication planning/placement/increase_replication
    planning/explain/test_explainer: explanation text why_unmoved
    planning/leadership/test_leader_caps: preferred_leaders
    planning/leadership/test_min_leaders: leader_balance new_leaders
    planning/leadership/test_topic_leaders: planning/placement/compatible_moves
    planning/limits/test_cap_constraint: domain/array_types planning/model/limits
    planning/limits/test_caps_and_sets: set_trees planning/placement/replica_sets
    planning/limits/test_current_limits: limit_checks
    planning/model/test_resource_loads: arrays domain/resources
    planning/placement/test_add_partitions_placed_before: domain/request/partition_counts
    planning/planner/test_plan_properties: planning/options planning/result/plan_moves
    planning/programs/test_lp_rounding: flow_lp planning/search/optional_parts
    planning/rebalance/test_budget_cut: planning/result/lower_bounds
    planning/rebalance/test_copy_sources: swap_candidates swap_slack planning/model/layout
        planning/search/cheaper_copies
    planning/rebalance/test_exclusions_and_budgets: planning/model/scope planning/placement/movable
        planning/placement/within_budget
    planning/rebalance/test_rebalance: planning/model/load_bands planning/search/fill
    planning/rebalance/test_solver_optimality: problem reconsider
    planning/rebalance/test_topic_spread: planning/model/topic_bands planning/result/topic_notes
        planning/search/topic_repair
    planning/result/test_infeasible: planning/rebalance/band_notes
    planning/result/test_log_dir_choice: planning/model/packing planning/model/volumes
    planning/result/test_summary_figures: outcome resource_bands
    planning/search/test_broker_shed: leader_egress
    planning/search/test_local_search: trades
    planning/search/test_state: replica_index
    planning/slices/test_slice_planner: rounds slice_steps slices
    plugins/fleet/test_cluster_dags: clusters
    plugins/fleet/test_healing: ledger/stores/watched/starts plugins/run/run_params
    plugins/fleet/test_stays_open: page/findings watching/stays_open
    plugins/fleet/test_watching: plugins/assets plugins/operators/watch ui/fleet
    plugins/hooks/test_cluster_hook: plugins/installation plugins/run/task_errors
    plugins/notifiers/test_delivery_of_alerts: webhook plugins/alerting
    plugins/operators/test_approve_four_eyes: plugins/run/approval_terms
    plugins/operators/test_control_lease_owners: sweep
    plugins/operators/test_plan_disk_alerts: rollup
    plugins/operators/test_plan_fleet: plugins/fleet/due_clusters
    plugins/run/test_plan_of_run: plan_ids recorded_plans run_note run_request alerts/run_end
        plugins/notifiers/run_end plugins/operators/completion/report
        plugins/operators/completion/verdict
    plugins/test_trigger_check: params
    plugins/triggers/test_progress_trigger: watch
    quality/engine/test_query_counts: pair_counts
    quality/engine/test_runner: context expectation_results frames results rules
    quality/facts/test_log_dir_fit: disks gate_input
    quality/plan/test_rules_of_plan_gate: broker_table evacuation leader_table leadership
        limit_table move_table replacements set_spread tables topic_table quality/facts/evacuated
        quality/facts/limits quality/facts/move_columns quality/facts/partitions
        quality/facts/rack_spread quality/facts/ragged_lists quality/facts/scope
        quality/facts/unmet_targets quality/facts/unplannable
    quality/snapshot/test_tables_of_snapshot: replica_aggregates
    reporting/charts/test_plan_charts: domain/plan/figures
    reporting/test_plan_text: data number_text predicted_time
    reporting/test_report: collect plan_files status_facts status_summary
        reporting/charts/rate_chart
    spark/test_requests: clusters/filled_requests
    test_settings: errors field_descriptions setting_types
    test_warehouse: directory
    ui/routes/test_data_docs: quality/published/project quality/published/standalone
        quality/published/tree
    ui/test_access: app lazy_app rendering ui/routes/downloads
    ui/test_browser: approvals dag_runs plans ui/routes/actions ui/routes/lists ui/routes/live
        ui/routes/plan ui/routes/shared
    ui/test_flow_pictures: links
    watching/judging/test_judge: columns spread
    watching/test_paused_plan: paused_text
    watching/test_refusal: cluster/snapshot/layout_digest
    watching/test_remedy_of_findings: finding
    watching/test_respond: kinds
"""
"""Test file: modules that have no test file of their own. One in another folder is named with its
path, as its tests would have: ``/errors`` is directly in include/.
"""


def table(text: str) -> dict[str, str]:
    """Module → its test file, both as paths below tests/ without ``.py``."""
    found: dict[str, str] = {}
    file = ""
    for word in text.split():
        if word.endswith(":"):
            file = word[:-1]
            continue
        module = word.lstrip("/") if "/" in word else beside(file, word)
        assert module not in found, f"{module} is in the table twice"
        found[module] = file
    return found


def beside(file: str, name: str) -> str:
    """A path in the folder of another."""
    return PurePosixPath(file).with_name(name).as_posix()


@cache
def sources() -> dict[str, Path]:
    """Dotted name → file, of all code that is tested; packages are named as their folder."""
    found = {}
    for folder in ("include", "plugins/rehome", "dags", "spark_jobs"):
        for path in (ROOT / folder).rglob("*.py"):
            parts = path.relative_to((ROOT / folder).parent).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


@cache
def modules() -> dict[str, str]:
    """Module, by the path that its tests would have below tests/ → its dotted name."""
    found = {}
    for name, path in sources().items():
        house, *parts = name.split(".")
        if path.stem == "__init__" or "migrations" in parts or house not in ("include", "rehome"):
            continue
        if house == "rehome" and parts[0] != "ui":
            parts.insert(0, "plugins")
        found["/".join(parts)] = name
    return found


def files_of_tests() -> list[str]:
    paths = sorted(TESTS.rglob("test_*.py"))
    return [path.relative_to(TESTS).with_suffix("").as_posix() for path in paths]


def namesake(file: str, known: Collection[str]) -> str | None:
    """The module that a test file is named after: of several, the one with the longest name."""
    aspect = PurePosixPath(file).name.removeprefix("test_")
    words = aspect.split("_")
    names = ["_".join(words[:n]) for n in range(len(words), 0, -1)]
    folder = PurePosixPath(file).parent.as_posix()
    return next(
        (path for path in (*(beside(file, n) for n in names), folder) if path in known), None
    )


def problems(
    entries: Mapping[str, str], known: Collection[str], files: Collection[str]
) -> Iterator[str]:
    """Modules whose tests nobody would find, and entries that are not needed."""
    named = {namesake(file, known) for file in files}
    for module in known:
        if module not in named and module not in entries:
            yield f"{module} has no test file of its name, and none in the table"
    for module, file in entries.items():
        if module not in known:
            yield f"{module} is in the table, and no module"
        elif module in named:
            yield f"{module} is in the table, and has a test file of its name"
        if file not in files:
            yield f"{file} is in the table, and no test file"


@cache
def helpers() -> dict[str, Path]:
    """Dotted name → file, of all in tests/."""
    paths = TESTS.rglob("*.py")
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}


def imported(path: Path, known: Collection[str]) -> set[str]:
    """Which of the known modules a file imports, wherever in it."""
    names = [name for name, _ in imports_of(path)]
    return {end for name in names for end in (name, name.rpartition(".")[0]) if end in known}


@cache
def used_by(file: str) -> frozenset[str]:
    """What a test imports, by its helpers and fixtures too; those in tests/dags run the DAGs."""
    path = TESTS / f"{file}.py"
    rooms = [folder for folder in path.parents if TESTS in folder.parents]
    ahead = [path, *(conftest for room in rooms for conftest in room.glob("conftest.py"))]
    if file.startswith("dags/"):
        ahead += (ROOT / "dags").glob("*.py")
    seen: set[Path] = set()
    found: set[str] = set()
    while ahead:
        one = ahead.pop()
        if one not in seen:
            seen.add(one)
            found |= imported(one, sources())
            ahead += [helpers()[name] for name in imported(one, helpers())]
    return frozenset(found)


@cache
def uses(source: str) -> frozenset[str]:
    return frozenset(imported(sources()[source], sources()))


@cache
def reached(file: str, *, far: bool) -> frozenset[str]:
    """What a test imports, and what that imports; ``far``: however many imports away."""
    found = used_by(file)
    while True:
        more = found.union(*map(uses, found))
        if not far or more == found:
            return more
        found = more


def reaches(file: str, module: str) -> bool:
    """Whether a test uses a module. Tests of its own house may reach it from far."""
    house = module.split("/")[0]
    return modules()[module] in reached(file, far=file.startswith(f"{house}/"))


def test_the_tests_of_every_module_are_found_by_its_name() -> None:
    assert list(problems(table(TESTED_IN), modules(), files_of_tests())) == []


def test_what_the_table_names_uses_the_module() -> None:
    entries = table(TESTED_IN).items()
    assert [(module, file) for module, file in entries if not reaches(file, module)] == []


KNOWN = ("a/plan", "a/plan_text", "a/solver", "b/move")
FILES = ("a/test_plan", "a/test_plan_text_of_moves", "a/solver/test_speed")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "b/move has no test file of its name, and none in the table"),
        ("a/test_plan: b/move solver", "a/solver is in the table, and has a test file of its name"),
        ("a/test_plan: b/move gone", "a/gone is in the table, and no module"),
        ("a/test_gone: b/move", "a/test_gone is in the table, and no test file"),
    ],
)
def test_what_is_wrong_with_the_table_is_found(text: str, problem: str) -> None:
    assert list(problems(table(text), KNOWN, FILES)) == [problem]
    assert list(problems(table("a/test_plan: b/move"), KNOWN, FILES)) == []


def test_a_file_about_another_module_with_a_longer_name_does_not_count() -> None:
    found = list(problems(table("a/test_plan_text_of_moves: b/move"), KNOWN, FILES[1:]))
    assert found == ["a/plan has no test file of its name, and none in the table"]


def test_a_test_that_does_not_use_the_module_is_found() -> None:
    assert reaches("planning/search/test_local_search", "planning/search/trades")
    assert not reaches("planning/search/test_local_search", "alerts/message")
