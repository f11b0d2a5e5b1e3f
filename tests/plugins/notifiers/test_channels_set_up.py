"""Channels as people set them up: what is wrong with them is said before an alert is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rehome.alerts.channels import WEBHOOK
from rehome.alerts.kinds import AlertKind
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.findings import Severity
from rehome.execution.dry_run.typed_finding import FoundKind
from rehome.execution.dry_run.words.worded import put_in_words
from rehome.notifiers import delivery
from rehome.operators.dry_run import channel_findings
from tests.e2e.webhook import Webhook
from tests.plugins.mailbox import CHANNEL, Mailbox
from tests.plugins.notifiers.delivered import SECRET, STALLED, SetUp, connect, events, raised


def test_wrong_channels_are_reported_and_the_others_are_used(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels({"notifier": "x.Y", "kinds": ["nonsense"]}, CHANNEL)
    with Mailbox() as mailbox:
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", mailbox.connection)
        raised()
    assert len(mailbox.mails) == 1
    (failure,) = events(EventKind.ALERT_NOT_SENT)
    assert "alert_channels[0] has unknown kinds nonsense: known are data_lost, failed, " in failure


def test_a_dry_run_warns_of_channels_that_cannot_be_used(channels: SetUp) -> None:
    channels({"notifier": "x.Y", "kinds": ["nonsense"]}, {"notifier": "no.such.Notifier"}, CHANNEL)
    found = channel_findings()
    assert {each.kind for each in found} == {FoundKind.CHANNEL_UNUSABLE}
    kinds, path = map(put_in_words, found)
    assert "alert_channels[0] has unknown kinds nonsense" in str(kinds)
    assert "alert_channels[1] (Notifier): its notifier no.such.Notifier cannot be imported" in str(
        path
    )
    assert {found.severity for found in (kinds, path)} == {Severity.WARNING}
    assert "Correct the setting alert_channels" in path.remedy


@pytest.mark.parametrize("secret", [{"password": "bearer"}, {"extra": {"signing_secret": SECRET}}])
def test_a_webhook_with_a_secret_gets_nothing_over_http_unless_that_is_set(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch, secret: dict[str, Any]
) -> None:
    with Webhook() as hook:
        connect(monkeypatch, hook.url, **secret)
        (found,) = map(put_in_words, channel_findings())
        assert "connection rehome_webhook has a secret, and its URL is http://" in str(found)
        raised()
        assert hook.requests == []
        (said,) = events(EventKind.ALERT_NOT_SENT)
        assert "Write https://…, or set webhook_allow_http" in said
        assert "bearer" not in said
        assert SECRET not in said
        monkeypatch.setenv("REHOME_WEBHOOK_ALLOW_HTTP", "true")
        assert channel_findings() == []
        raised(replace(STALLED, subject="p2", plan_id="p2"))
        assert len(hook.reported) == 1


def test_a_webhook_without_a_connection_is_warned_of(channels: SetUp) -> None:
    channels({"notifier": WEBHOOK, "arguments": {"webhook_conn_id": "none"}})
    (found,) = map(put_in_words, channel_findings())
    assert "there is no connection none" in str(found)


def test_channels_take_what_they_are_set_up_for(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Webhook() as first, Webhook() as second:
        connect(monkeypatch, first.url, "FIRST")
        connect(monkeypatch, second.url, "SECOND")
        channels(
            {
                "notifier": WEBHOOK,
                "arguments": {"webhook_conn_id": "first", "body": '{"t": "{{ alert.title }}"}'},
                "kinds": ["stalled"],
            },
            {
                "notifier": WEBHOOK,
                "arguments": {"webhook_conn_id": "second"},
                "min_severity": "warning",
            },
        )
        for kind in (AlertKind.STALLED, AlertKind.DONE, AlertKind.THROTTLE_LOWERED):
            delivery.deliver(replace(STALLED, kind=kind))
    assert first.reported == [{"t": "[Rehome] Plan p1: nothing moves"}]
    assert [reported["kind"] for reported in second.reported] == ["stalled", "throttle_lowered"]
