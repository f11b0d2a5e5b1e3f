"""Where alerts are sent: the setting ``alert_channels``, read with every problem it has.

A channel is any of Airflow's notifiers, by its import path, with the arguments it is made with::

    [{"notifier": "airflow.providers.smtp.notifications.smtp.SmtpNotifier",
      "arguments": {"to": "kafka-team@example.org", "from_email": "rehome@example.org"},
      "min_severity": "warning"}]

Strings in arguments may name the alert: ``{{ alert.text }}``. See :data:`ALERT_FIELDS`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from rehome.alerts.alert import Alert
from rehome.alerts.catalog import CATALOG
from rehome.alerts.kinds import AlertKind
from rehome.alerts.message import html_body, json_body, one_line, payload, subject_line, text_body
from rehome.domain.run.findings import Severity

SMTP = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"
SLACK_NOTIFIER = "airflow.providers.slack.notifications.slack.SlackNotifier"
SLACK_WEBHOOK = "airflow.providers.slack.notifications.slack_webhook.SlackWebhookNotifier"
WEBHOOK = "rehome.notifiers.webhook.WebhookNotifier"

_FOR_SLACK = (
    "{{ alert.text | replace('&', '&amp;') | replace('<', '&lt;') | replace('>', '&gt;') }}"
)
DEFAULTS: Mapping[str, Mapping[str, str]] = {
    SMTP: {"subject": "{{ alert.title }}", "html_content": "{{ alert.html }}"},
    SLACK_NOTIFIER: {"text": _FOR_SLACK},
    SLACK_WEBHOOK: {"text": _FOR_SLACK},
    WEBHOOK: {"body": "{{ alert.json }}", "message_id": "{{ alert.message_id or '' }}"},
}
"""What notifiers are given where their arguments do not say it."""

ALERT_FIELDS = ("text", "line", "title", "html", "json", *payload(Alert(AlertKind.DONE, "", "")))
"""What ``alert.…`` may name: ``text`` is plain text of several lines, ``line`` one line, ``title``
the subject line, ``html`` and ``json`` the same in full; then the keys of the JSON."""

_KEYS = ("notifier", "arguments", "kinds", "min_severity")
_SENT = tuple(e.kind for e in CATALOG if e.sent and e.kind is not AlertKind.SEVERAL)
"""What a channel may be set up for: a message about several has those that the channel takes."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One way to notify people.

    :param name: what logs, events and the page call it.
    :param notifier: import path of a class of Airflow's notifiers.
    :param kinds: only these; None = all that are sent.
    :param min_severity: nothing that is less severe.
    """

    name: str
    notifier: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    kinds: frozenset[AlertKind] | None = None
    min_severity: Severity = Severity.INFO

    def takes(self, alert: Alert) -> bool:
        """Whether an alert is for this channel."""
        severities = list(Severity)
        severe = severities.index(alert.severity) <= severities.index(self.min_severity)
        return severe and (self.kinds is None or alert.kind in self.kinds)

    def arguments_for(self, alert: Alert) -> dict[str, Any]:
        """What the notifier is made with.

        :raises jinja2.TemplateError: an argument names what there is not.
        """
        arguments = {**DEFAULTS.get(self.notifier, {}), **self.arguments}
        return {name: _rendered(value, _words(alert)) for name, value in arguments.items()}


def read_channels(setting: object) -> tuple[tuple[Channel, ...], tuple[str, ...]]:
    """The channels that can be used, and everything that is wrong with the others.

    :param setting: ``alert_channels``, as plain JSON types.
    :returns: channels; and sentences that name the entry and the remedy.
    """
    if not isinstance(setting, list | tuple):
        return (), ("alert_channels is not a list: write [{…}], also for one channel.",)
    channels, problems = [], []
    for index, entry in enumerate(setting):
        found = [f"alert_channels[{index}] {problem}" for problem in _problems(entry)]
        problems += found
        if not found:
            channels.append(_channel(index, entry))
    return tuple(channels), tuple(problems)


def _channel(index: int, entry: Mapping[str, Any]) -> Channel:
    kinds = entry.get("kinds")
    return Channel(
        name=f"alert_channels[{index}] ({entry['notifier'].rpartition('.')[2]})",
        notifier=entry["notifier"],
        arguments=entry.get("arguments") or {},
        kinds=None if kinds is None else frozenset(map(AlertKind, kinds)),
        min_severity=Severity(entry.get("min_severity") or Severity.INFO),
    )


def _problems(entry: object) -> Iterator[str]:
    """Values are not quoted: they may be secret."""
    if not isinstance(entry, Mapping):
        yield 'is no object: write {"notifier": "…", "arguments": {…}}.'
        return
    for key in entry:
        if key not in _KEYS:
            yield f"has the unknown key {key!r}: known are {', '.join(_KEYS)}."
    notifier = entry.get("notifier")
    if not isinstance(notifier, str) or not notifier.rpartition(".")[0]:
        yield f"names no notifier: give the import path of its class, such as {SMTP}."
    yield from _problems_of_arguments(entry.get("arguments") or {})
    kinds = entry.get("kinds")
    if kinds is not None and not isinstance(kinds, list | tuple):
        yield "has kinds that are no list."
    else:
        unknown = [kind for kind in kinds or () if kind not in _SENT]
        if unknown:
            yield f"has unknown kinds {', '.join(map(str, unknown))}: known are {', '.join(_SENT)}."
    severity = entry.get("min_severity")
    if severity is not None and severity not in tuple(Severity):
        yield f"has an unknown min_severity: known are {', '.join(Severity)}."


def _problems_of_arguments(arguments: object) -> Iterator[str]:
    if not isinstance(arguments, Mapping):
        yield "has arguments that are no object: write names and values of the notifier's own."
        return
    words = dict.fromkeys(ALERT_FIELDS, "")
    for name, value in arguments.items():
        try:
            _rendered(value, words)
        except TemplateError as error:
            yield (
                f"has the argument {name!r}, which cannot be rendered ({error}): alert has "
                f"{', '.join(ALERT_FIELDS)}."
            )


def _rendered(value: Any, words: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return _environment().from_string(value).render(alert=words)
    if isinstance(value, Mapping):
        return {name: _rendered(item, words) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rendered(item, words) for item in value]
    return value


def _words(alert: Alert) -> dict[str, Any]:
    return {
        **payload(alert),
        "text": text_body(alert),
        "line": one_line(alert),
        "title": subject_line(alert),
        "html": html_body(alert),
        "json": json_body(alert),
    }


@cache
def _environment() -> SandboxedEnvironment:
    """Not Airflow's: a setting has no business in a task's context, nor an alert's text in it."""
    return SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=True)
