"""The setting of who gets alerts."""

from __future__ import annotations

from typing import Any

import pytest

from rehome.alerts.alert import Alert
from rehome.alerts.channels import SMTP, read_channels
from rehome.alerts.kinds import AlertKind
from rehome.errors import InvalidRequestError
from rehome.settings import Settings


def test_every_problem_of_the_setting_is_named_at_once_by_entry_and_remedy() -> None:
    entries: list[Any] = [
        {"notifier": SMTP, "arguments": {"to": "a@b"}},
        {"notifier": "Smtp", "argument": {}, "kinds": ["stalled", "held"], "min_severity": "bad"},
        {"notifier": SMTP, "arguments": {"to": "{{ alert.nobody }}", "subject": "{{"}},
        "s3cret",
        {"notifier": SMTP, "arguments": ["s3cret"], "kinds": "stalled"},
    ]
    channels, problems = read_channels(entries)
    assert [channel.name for channel in channels] == ["alert_channels[0] (SmtpNotifier)"]
    begins = [" ".join(problem.split()[:4]) for problem in problems]
    assert begins == [
        "alert_channels[1] has the unknown",
        "alert_channels[1] names no notifier:",
        "alert_channels[1] has unknown kinds",
        "alert_channels[1] has an unknown",
        "alert_channels[2] has the argument",
        "alert_channels[2] has the argument",
        "alert_channels[3] is no object:",
        "alert_channels[4] has arguments that",
        "alert_channels[4] has kinds that",
    ]
    assert "s3cret" not in " ".join(problems)
    assert "unknown kinds held: known are data_lost, failed, orphaned" in problems[2], (
        "that is not sent"
    )
    assert read_channels({})[1] == (
        "alert_channels is not a list: write [{…}], also for one channel.",
    )


def test_arguments_name_the_alert_and_what_the_alert_says_is_no_template() -> None:
    arguments = {"to": ["{{ alert.state }}@x"], "files": {"a": "{{ alert.title }}"}, "n": 1}
    ((channel,), _) = read_channels([{"notifier": SMTP, "arguments": arguments}])
    alert = Alert(AlertKind.DONE, "p1", "{{ 7 * 7 }}", plan_id="p1", state="done")
    made = channel.arguments_for(alert)
    assert made["to"] == ["done@x"]
    assert made["files"] == {"a": "[Rehome] Plan p1: done"}
    assert made["subject"] == "[Rehome] Plan p1: done"
    assert "{{ 7 * 7 }}" in made["html_content"]
    assert made["n"] == 1


def test_the_setting_is_read_from_json_and_no_value_of_it_is_quoted() -> None:
    entry = {"notifier": SMTP}
    assert Settings.load({"alert_channels": [entry]}).alert_channels == (entry,)
    assert Settings.load({"alert_channels": '[{"notifier": "x.Y"}]'}).alert_channels
    for wrong in ('{"token": "s3cret"}', "s3cret", ["s3cret"]):
        taken = "not what it takes: JSON list of objects"
        with pytest.raises(InvalidRequestError, match=taken) as refused:
            Settings.load({"alert_channels": wrong})
        assert "s3cret" not in str(refused.value)
