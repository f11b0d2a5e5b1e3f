"""Findings of the dry run where caps, broker sets or targets have changed since the plan."""

from __future__ import annotations

from rehome.domain.request.cluster_values import ClusterValues
from rehome.domain.request.limits import read_caps
from rehome.domain.run.findings import Severity
from rehome.execution.dry_run.settings_checks import not_compared, settings_findings
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding
from rehome.execution.dry_run.words.worded import put_in_words


def values(replicas: int) -> ClusterValues:
    return ClusterValues.of(read_caps({"default": {"replicas": replicas}}), (), {}, "drain")


def test_nothing_is_said_where_nothing_has_changed() -> None:
    assert list(settings_findings(values(4), values(4), [])) == []


def test_a_change_is_a_warning_with_the_old_and_the_new_value() -> None:
    (finding,) = settings_findings(values(4), values(5), [])
    kind = FoundKind.SETTING_CHANGED
    assert finding == TypedFinding(kind, "caps.default.replicas", was="4", value="5")
    assert kind.severity is Severity.WARNING
    said = put_in_words(finding)
    assert said.message == "has changed since the plan was made, from 4 to 5"
    assert "trigger a new run" in said.remedy


def test_a_limit_of_now_that_is_broken_is_an_error_before_the_changes() -> None:
    error, warning = settings_findings(values(4), values(3), ["Broker 2 would end with 4."])
    assert (error.severity, warning.severity) == (Severity.ERROR, Severity.WARNING)
    assert error == TypedFinding(FoundKind.LIMIT_BROKEN, "plan", value="Broker 2 would end with 4")
    assert put_in_words(error).remedy.startswith(
        "This plan cannot go on as it is. If it is paused, cancel it."
    )


def test_a_plan_of_an_earlier_version_is_reported_as_not_known() -> None:
    (finding,) = settings_findings(None, values(3), [])
    assert finding == TypedFinding(FoundKind.SETTINGS_NOT_KEPT, "plan")
    assert finding.severity is Severity.WARNING
    assert "an earlier version" in put_in_words(finding).message


def test_a_clusters_file_that_cannot_be_used_is_named_with_what_to_do() -> None:
    finding = not_compared("The clusters file x cannot be used: … Correct the clusters file.")
    assert finding.severity is Severity.WARNING
    assert "Correct the clusters file." in str(put_in_words(finding))
