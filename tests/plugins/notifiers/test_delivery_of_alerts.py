"""Alerts on their way to people: real servers on loopback, and Airflow's own notifiers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import BaseNotifier
from airflow.sdk.exceptions import AirflowSkipException
from standardwebhooks import Webhook as Receiver
from standardwebhooks import WebhookVerificationError

from local.process.waiting import wait_until
from rehome import alerting, installation
from rehome.alerts.channels import SLACK_NOTIFIER, WEBHOOK
from rehome.alerts.kinds import AlertKind
from rehome.domain.run.event_kind import EventKind
from rehome.notifiers import delivery, webhook
from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.send_alerts import SendAlertsOperator
from rehome.operators.sweep import SweepThrottlesOperator
from rehome.run.ports import Item
from tests.e2e.webhook import Webhook
from tests.plugins.mailbox import CHANNEL, FROM, TO, Mailbox, text_of
from tests.plugins.notifiers.delivered import SECRET, STALLED, SetUp, connect, events, raised


def test_an_alert_reaches_a_mail_server_and_a_webhook_once_with_all_that_a_person_needs(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels(CHANNEL)
    with Mailbox() as mailbox, Webhook() as hook:
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", mailbox.connection)
        connect(monkeypatch, hook.url, extra={"signing_secret": SECRET}, password="bearer")
        monkeypatch.setenv("REHOME_WEBHOOK_ALLOW_HTTP", "true")
        for _ in range(3):
            raised()
    (mail,), (reported,), ((headers, body),) = mailbox.mails, hook.reported, hook.requests
    assert (mail["to"], mail["from"]) == (TO, FROM)
    assert mail["subject"] == reported["title"] == "[Rehome] Plan p1: nothing moves"
    text = text_of(mail)
    assert "Nothing has moved &lt;since&gt; noon." in text
    for named in ("p1 (running)", "c1, through connection kafka_default", "docs/alerts/stalled.md"):
        assert named in text
    assert "Check the {{ brokers }}." in text, "what an alert says is no template"
    assert reported["page"] in text
    assert reported["page"].endswith("/plugin/reassignments/rehome/plans/p1")
    assert reported["text"] == "Plan p1: Nothing has moved <since> noon. Check the {{ brokers }}."
    assert (reported["kind"], reported["severity"], reported["run_id"]) == (
        "stalled",
        "error",
        "run-1",
    )
    assert headers["authorization"] == "Bearer bearer"
    assert Receiver(SECRET).verify(body.decode(), headers) == reported
    with pytest.raises(WebhookVerificationError):
        Receiver(SECRET).verify(body.decode().replace("p1", "p2"), headers)
    (said,) = events(EventKind.ALERT_SENT)
    assert said.endswith("(sent through alert_channels[0] (SmtpNotifier), rehome_webhook)")


def test_an_alert_that_several_tasks_raise_at_once_is_sent_once(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Webhook() as hook, ThreadPoolExecutor(6) as many:
        connect(monkeypatch, hook.url)
        list(many.map(lambda _: raised(), range(12)))
    assert len(hook.reported) == 1


@pytest.mark.parametrize("failures", [(503, 429), (-1,)])
def test_a_webhook_that_falters_is_tried_again_with_the_same_id(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch, failures: tuple[int, ...]
) -> None:
    with Webhook(*failures) as hook:
        connect(monkeypatch, hook.url)
        assert delivery.deliver(STALLED) == {"rehome_webhook": ""}
    assert len(hook.reported) == 1
    assert len(hook.requests) == len(failures) + 1
    assert len({headers["webhook-id"] for headers, _ in hook.requests}) == 1


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ((400,), "WebhookError: The server answers 400"),
        ((503,) * 99, "The server answers 503, again and again"),
    ],
)
def test_a_channel_that_refuses_an_alert_is_reported_and_fails_no_task(
    channels: SetUp,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    answers: tuple[int, ...],
    why: str,
) -> None:
    monkeypatch.setattr(webhook, "GIVE_UP_S", 1.0)
    channels(CHANNEL)
    with Mailbox() as mailbox, Webhook(*answers) as hook:
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", mailbox.connection)
        connect(monkeypatch, f"{hook.url}/t0ken", extra={"signing_secret": SECRET})
        monkeypatch.setenv("REHOME_WEBHOOK_ALLOW_HTTP", "true")
        raised()
    assert len(mailbox.mails) == 1, "the other channel has it"
    assert not hook.reported
    (failure,) = events(EventKind.ALERT_NOT_SENT)
    assert why in failure
    assert why in caplog.text
    with installation.open_ledger() as ledger:
        (record,) = ledger.alerts("p1")
    assert list(record.failed_channels) == ["rehome_webhook"]
    assert "t0ken" not in failure + json.dumps(dict(record.failed_channels))
    assert SECRET not in caplog.text


def test_a_server_that_is_not_there_is_reported_without_its_address(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook, "GIVE_UP_S", 0.1)
    connect(monkeypatch, "http://127.0.0.1:1/t0ken")
    (why,) = delivery.deliver(STALLED).values()
    assert "The server cannot be reached (ConnectError)" in why
    assert "t0ken" not in why
    connect(monkeypatch, "127.0.0.1/t0ken")
    (why,) = delivery.deliver(STALLED).values()
    assert "the webhook of connection rehome_webhook: its host is no URL" in why


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"password": "t0ken\n"}, "of connection rehome_webhook cannot be sent as a token"),
        ({"password": "t0kén"}, "of connection rehome_webhook cannot be sent as a token"),
        (
            {"extra": {"signing_secret": "whsec_t0ken"}},
            "of connection rehome_webhook begins with whsec_, and what follows is no base64",
        ),
        ({"url": "https://hooks..example/t0ken"}, "The connection's host is no URL"),
    ],
)
def test_what_cannot_be_sent_as_the_connection_has_it_is_named_and_not_tried_again(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], why: str
) -> None:
    monkeypatch.setattr(webhook, "GIVE_UP_S", 0.1)
    connect(monkeypatch, **{"url": "https://127.0.0.1:1", **more})
    (reason,) = delivery.deliver(STALLED).values()
    assert why in reason
    assert "again and again" not in reason
    assert "t0k" not in reason


class HangingNotifier(BaseNotifier):
    """As of a provider without timeouts."""

    may_end: Callable[[], bool]

    def notify(self, context: Any) -> None:
        wait_until(HangingNotifier.may_end, "the notifier to be let go", 240)


def test_a_notifier_that_hangs_delays_a_task_until_the_deadline_at_most(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "DEADLINE_S", 0.3)
    deadline_is_over = threading.Event()
    HangingNotifier.may_end = deadline_is_over.is_set
    channels({"notifier": f"{__name__}.HangingNotifier"})
    results = delivery.deliver(STALLED)
    deadline_is_over.set()
    assert results == {"alert_channels[0] (HangingNotifier)": "It did not end within 0.3 s"}


def test_a_notifier_that_hangs_does_not_delay_the_other_channels(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "DEADLINE_S", 120)
    channels({"notifier": f"{__name__}.HangingNotifier"})
    with Webhook() as hook:
        HangingNotifier.may_end = lambda: bool(hook.requests)
        connect(monkeypatch, hook.url)
        results = delivery.deliver(STALLED)
    assert results == {"rehome_webhook": "", "alert_channels[0] (HangingNotifier)": ""}


@pytest.mark.slow
def test_a_task_waits_once_for_a_channel_that_hangs_and_tries_the_others_each_time(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "DEADLINE_S", 2)
    hangs, begun = "alert_channels[0] (HangingNotifier)", []
    may_end = threading.Event()

    def waits() -> bool:
        begun.append(threading.current_thread())
        return may_end.wait(240)

    HangingNotifier.may_end = waits
    channels({"notifier": f"{__name__}.HangingNotifier"})
    with Webhook() as hook:
        connect(monkeypatch, hook.url)
        with delivery.one_task():
            first, second = delivery.deliver(STALLED), delivery.deliver(STALLED)
        with delivery.one_task():
            of_the_next = delivery.deliver(STALLED)
    may_end.set()
    for thread in begun:
        thread.join(240)
    assert first == of_the_next == {hangs: "It did not end within 2 s", "rehome_webhook": ""}
    assert second == {hangs: "It was not tried: 2 s were waited before", "rehome_webhook": ""}
    assert (len(begun), len(hook.requests)) == (2, 3)


def test_callbacks_of_one_process_wait_half_as_long_as_the_dag_processor_lets_it_run(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A process that takes longer is killed, and its DAG taken for deleted for a while."""
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT", "1")
    may_end = threading.Event()
    HangingNotifier.may_end = may_end.is_set
    channels({"notifier": f"{__name__}.HangingNotifier"})
    ended = RehomeNotifier("failed")
    ended.notify({"params": {}, "run_id": "run-1"})
    assert "(HangingNotifier): It did not end within 0.5 s" in caplog.text
    ended.notify({"params": {}, "run_id": "run-2"})  # in the same process
    assert "(HangingNotifier): It was not tried: 0.5 s were waited before" in caplog.text
    may_end.set()


def test_many_alerts_at_once_are_one_message_with_each_whole(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    channels({"notifier": WEBHOOK, "kinds": ["stalled"]}, CHANNEL)
    alerts = [
        replace(STALLED, kind=kind, subject=f"p{n}", plan_id=f"p{n}", message_id=f"id-{n}")
        for n in range(12)
        for kind in (AlertKind.STALLED, AlertKind.DONE)
    ]
    with Webhook() as hook, Mailbox() as mailbox:
        connect(monkeypatch, hook.url)
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", mailbox.connection)
        results = delivery.deliver_all([Item(alert) for alert in alerts])
    by_channel = {"alert_channels[0] (WebhookNotifier)", "alert_channels[1] (SmtpNotifier)"}
    assert [set(each) for each in results[:2]] == [by_channel, by_channel - {min(by_channel)}]
    assert {why for each in results for why in each.values()} == {""}
    (request,), (mail,) = hook.reported, mailbox.mails
    assert (request["kind"], request["severity"]) == ("several", "error")
    assert [each["message_id"] for each in request["alerts"]] == [f"id-{n}" for n in range(12)]
    assert mail["subject"] == "[Rehome] 24 alerts: several alerts"
    assert "Plan p11: Nothing has moved" in text_of(mail)


def test_a_slow_channel_takes_a_minute_at_most_and_nothing_is_begun_after_it(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers the first of three when the deadline is over."""
    monkeypatch.setattr(delivery, "DEADLINE_S", 0.3)
    deadline_is_over, begun = threading.Event(), []

    def may_end() -> bool:
        begun.append(threading.current_thread())
        return deadline_is_over.wait(240)

    HangingNotifier.may_end = may_end
    channels({"notifier": f"{__name__}.HangingNotifier"})
    results = delivery.deliver_all([Item(STALLED)] * 3)
    deadline_is_over.set()
    begun[0].join(240)
    assert len(begun) == 1, "the others are left to the next task"
    late = {"alert_channels[0] (HangingNotifier)": "It did not end within 0.3 s"}
    assert results == [late] * 3


def test_what_a_task_has_written_down_is_sent_by_the_next_one_with_its_id(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Webhook() as hook:
        connect(monkeypatch, hook.url)
        with installation.open_ledger() as ledger:
            alerting.journal(ledger, [STALLED])
            assert hook.requests == []
            SendAlertsOperator(task_id="send_alerts").execute({})
            (record,) = ledger.alerts("p1")
        assert [request["message_id"] for request in hook.reported] == [record.message_id]
        ((headers, _),) = hook.requests
        assert headers["webhook-id"] == f"msg_{record.message_id}"


def test_a_sweep_sends_what_is_left_also_where_it_has_nothing_to_sweep(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The DAG that has found it may be paused."""
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    sweep = SweepThrottlesOperator(task_id="sweep")
    run = SimpleNamespace(run_type="scheduled", run_id="r1", dag_id="sweep_throttles")
    context: Any = {"task": sweep, "dag_run": run, "params": {}}
    with Webhook() as hook:
        connect(monkeypatch, hook.url)
        with installation.open_ledger() as ledger:
            alerting.journal(ledger, [STALLED])
        with pytest.raises(AirflowSkipException, match="nothing of Rehome's is set there"):
            sweep.execute(context)
        assert [request["kind"] for request in hook.reported] == ["stalled"]


@pytest.mark.parametrize(
    ("notifier", "why"),
    [
        ("no.such.Notifier", "install the Airflow provider that has it, or correct its name"),
        ("pathlib.Path", "is none of Airflow's notifiers"),
    ],
)
def test_a_notifier_that_there_is_not_is_named_with_the_remedy(
    channels: SetUp, notifier: str, why: str
) -> None:
    channels({"notifier": notifier})
    (reported,) = delivery.deliver(STALLED).values()
    assert why in reported


@pytest.mark.slow
def test_slacks_own_notifier_gets_our_text(
    channels: SetUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its real client, from a server that answers as Slack does."""
    posted: list[tuple[str, dict[str, Any]]] = []

    class Slack(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posted.append((self.path, json.loads(body)))
            answer = b'{"ok": true}'
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slack)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    api = f"http://127.0.0.1:{server.server_port}/api/"
    monkeypatch.setenv("AIRFLOW_CONN_SLACK", json.dumps({"conn_type": "slack", "password": "xoxb"}))
    arguments = {"slack_conn_id": "slack", "channel": "#kafka", "base_url": api}
    channels({"notifier": SLACK_NOTIFIER, "arguments": arguments})
    try:
        assert list(delivery.deliver(STALLED).values()) == [""]
    finally:
        server.shutdown()
        server.server_close()
    ((path, message),) = posted
    assert (path, message["channel"]) == ("/api/chat.postMessage", "#kafka")
    assert message["text"].startswith("[Rehome] Plan p1: nothing moves\n\n")
    assert "Nothing has moved &lt;since&gt; noon." in message["text"]
