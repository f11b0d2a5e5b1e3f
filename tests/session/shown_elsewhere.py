"""Tests on brokers that `make test` leaves to others, and which of these show the same.

Each runs a whole DAG, or moves data, for what is shown in this process for a tenth of the processor
time: by the operator's own tests, by the planner's, or by a script of the simulated world, which
runs the DAGs' own tasks. One test of each kind stays. All of them run in `make test-thorough`.
"""

from __future__ import annotations

import pytest

_ASKING = "tests/plugins/operators/approval/test_asking.py"
_FOUR_EYES = "tests/plugins/operators/approval/test_approve_four_eyes.py"
_PARTITIONS = "tests/plugins/operators/approval/test_approve_partitions.py"
_TERMS = "tests/execution/control/test_approval_terms.py"
_WALK = "tests/attacks/test_xcom_walk.py"
_SEEDS, _MUTANTS = "tests/world/test_simulate.py", "tests/world/test_mutants.py"
_CRASHES = "tests/execution/advance/test_advance_properties.py"

SHOWN_BY = {
    "tests/attacks/test_unapproved_changes.py": {
        "test_figures_that_were_edited_are_not_what_a_person_is_asked_by[dry_run.json]": _ASKING,
    },
    "tests/dags/actions/test_add_partitions.py": {
        "test_kafkas_own_striping_goes_round_all_brokers_whatever_their_racks": (
            "tests/planning/placement/test_new_partitions.py"
        ),
        "test_limits_that_change_refuse_what_was_placed_before[set]": (
            "tests/planning/placement/test_add_partitions_placed_before.py"
        ),
        "test_a_person_decides_where_that_is_asked_for[Reject-1]": _PARTITIONS,
        "test_a_placement_is_not_passed_where_no_snapshot_is_left_to_judge_it_by": _PARTITIONS,
        "test_a_task_that_was_set_to_success_by_hand_approves_no_partitions[approve]": _WALK,
        "test_a_task_that_was_set_to_success_by_hand_approves_no_partitions[dry_run]": _WALK,
        "test_what_one_person_has_asked_for_is_not_created_by_a_run_of_another[True]": _PARTITIONS,
    },
    "tests/dags/actions/test_broker_replaced.py": {
        "test_a_broker_is_replaced_in_its_places_and_its_leadership_goes_along": (
            "tests/planning/actions/test_replace.py"
        ),
    },
    "tests/dags/actions/test_brought_to_destinations.py": {
        "test_a_dry_run_changes_nothing_and_its_plan_brings_the_topic_to_the_destinations_alone": (
            "tests/planning/limits/test_destinations_on_brokers.py"
        ),
    },
    "tests/dags/actions/test_leader_actions.py": {
        "test_a_demoted_broker_leads_nothing_until_leaders_are_balanced_and_nothing_is_copied": (
            "tests/planning/actions/test_demote.py"
        ),
    },
    "tests/dags/actions/test_log_dir_evacuated.py": {
        "test_a_log_dir_is_emptied_into_another_one_of_its_broker": (
            "tests/planning/actions/test_evacuate_log_dirs.py"
        ),
        "test_cordoned_log_dirs_are_emptied_off_the_broker_where_it_has_no_other": (
            "tests/planning/actions/test_evacuate_log_dirs.py"
        ),
    },
    "tests/dags/actions/test_topic_leaders_spread.py": {
        "test_leaders_of_each_topic_are_spread_where_all_leaders_together_are_even_already": (
            "tests/planning/leadership/test_topic_leaders.py"
        ),
    },
    "tests/dags/approval/test_approval.py": {
        "test_a_plan_that_changes_while_a_person_decides_is_asked_for_again": _ASKING,
        "test_a_plan_does_not_start_with_another_rate_than_was_approved[found]": _TERMS,
        "test_a_plan_does_not_start_with_another_rate_than_was_approved[asked_for]": _ASKING,
        "test_a_plan_does_not_start_with_an_expired_approval": _TERMS,
        "test_a_run_that_goes_on_under_other_terms_asks_a_person_again[6000000]": _FOUR_EYES,
        "test_a_run_that_wants_a_person_asks_though_the_plan_has_paused_without_one[another]": (
            _TERMS
        ),
    },
    "tests/dags/approval/test_changed_files.py": {
        "test_a_file_that_is_changed_before_a_person_is_asked_is_not_put_up_for_approval": _ASKING,
    },
    "tests/dags/approval/test_policy_runs.py": {
        "test_an_approval_that_becomes_mandatory_before_the_plan_starts_is_required"
        "[answered_by_the_requester]": _FOUR_EYES,
        "test_an_approval_that_is_mandatory_is_asked_for_and_given_by_another_person[requester]": (
            _FOUR_EYES
        ),
        "test_a_throttle_above_the_largest_is_not_asked_of_a_plan_that_runs": (
            "tests/execution/control/test_asked_pace.py"
        ),
    },
    "tests/dags/clearing/test_clearing.py": {
        "test_whatever_is_cleared_the_same_plan_is_carried_on_or_a_refusal_is_clear[paused]": (
            _SEEDS
        ),
        "test_whatever_is_cleared_the_same_plan_is_carried_on_or_a_refusal_is_clear[cancelled]": (
            _SEEDS
        ),
    },
    "tests/dags/clearing/test_clearing_follow_up.py": {
        "test_a_follow_up_in_flight_is_carried_on_though_its_brokers_are_empty_by_now": _SEEDS,
    },
    "tests/dags/control/test_dead_runs.py": {
        "test_a_new_run_goes_on_with_what_is_in_flight_and_with_what_is_left": (
            "tests/execution/access/test_lease_on_brokers.py"
        ),
        "test_a_cancel_is_carried_out_though_no_run_drives_the_plan[sweep_throttles]": (
            "tests/execution/access/test_lease_on_brokers.py"
        ),
    },
    "tests/dags/drain/test_cordoned_drain.py": {
        "test_a_drain_cordons_its_brokers_and_ends_that_as_was_asked[keep]": (
            "tests/execution/throttle/cordon/test_cordon_on_brokers.py"
        ),
    },
    "tests/dags/drain/test_drain_means_empty.py": {
        "test_a_follow_up_needs_an_approval_of_its_own_and_without_it_the_run_fails_with_the_"
        "list": "tests/plugins/run/test_run_request.py",
    },
    "tests/dags/drain/test_drain_under_load.py": {
        "test_a_broker_is_emptied_under_load_and_no_acknowledged_message_is_lost": (
            "tests/faults/test_matrix.py"
        ),
    },
    "tests/dags/progress/test_progress_sensor.py": {
        "test_an_observer_succeeds_when_what_others_started_is_complete_and_changes_nothing"
        "[False]": "tests/dags/foreign/test_described_and_followed.py",
    },
    "tests/dags/refusals/test_wrong_cluster.py": {
        "test_a_request_through_another_clusters_connection_changes_nothing[continue]": (
            "tests/world/rehome/test_elsewhere.py"
        ),
    },
    "tests/dags/rights/test_secured_path.py": {
        "test_without_one_of_the_rights_the_run_names_it_and_changes_nothing"
        "[topic-alter_configs]": "tests/cluster/interface/test_rights.py",
        "test_a_principal_that_may_not_throttle_a_topic_is_refused_by_the_dry_run": (
            "tests/execution/dry_run/test_throttle_checks_on_brokers.py"
        ),
    },
    "tests/dags/rights/test_rights_to_add_partitions.py": {
        "test_partitions_are_added_with_what_a_planner_may_and_alter_on_the_topic": (
            "tests/cluster/interface/test_rights.py"
        ),
    },
    "tests/dags/test_reassign_partitions.py": {
        "test_limits_of_the_form_bind_the_plan": (
            "tests/execution/advance/test_limits_on_brokers.py"
        ),
        "test_bad_input_is_reported_in_plain_text_and_changes_nothing[-needs brokers]": (
            "tests/domain/request/test_request.py"
        ),
        "test_bad_input_is_reported_in_plain_text_and_changes_nothing[-replication_factor]": (
            "tests/domain/request/test_request.py"
        ),
        "test_a_step_that_raises_leaves_no_throttle_and_a_failed_run[verify]": _SEEDS,
    },
    "tests/dags/window/test_window.py": {
        "test_a_plan_that_breaks_a_cap_of_now_is_given_up_for_a_new_one[paused]": (
            "tests/execution/dry_run/test_replica_checks_of_limits.py"
        ),
    },
    "tests/execution/advance/test_advance_on_brokers.py": {
        f"test_an_advance_that_failed_anywhere_can_simply_be_repeated[{call}-{after}]": _CRASHES
        for call in ("list_reassignments", "describe_topics", "log_end_offsets")
        for after in (True, False)
    }
    | {
        "test_a_worker_killed_around_its_request_is_followed_by_one_that_goes_on[before]": _CRASHES,
    },
    "tests/execution/throttle/test_set_up_on_brokers.py": {
        "test_a_list_journalled_by_a_process_that_died_is_taken_back_though_it_was_not_seen_"
        "applied": _MUTANTS,
        "test_a_rate_that_another_client_deleted_is_set_again_before_a_move_starts": _MUTANTS,
    },
}
"""File → test → the file that shows it in `make test`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        file, _, test = item.nodeid.partition("::")
        if test in SHOWN_BY.get(file, {}):
            item.add_marker(pytest.mark.long)
