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
from typing import Annotated, Any

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment
from pydantic import BaseModel, ConfigDict, Field

from rehome.alerts.alert import Alert
from rehome.alerts.catalog import CATALOG
from rehome.alerts.kinds import AlertKind
from rehome.alerts.message import html_body, json_body, one_line, payload, subject_line, text_body
from rehome.domain.request.validation import Read, read_values
from rehome.domain.run.findings import Severity
from rehome.errors import InvalidRequestError

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
        return {name: _render(value, _words(alert)) for name, value in arguments.items()}


def _notifier(value: Any) -> str:
    if not isinstance(value, str) or not value.rpartition(".")[0]:
        raise _refusal(f"names no notifier: give the import path of its class, such as {SMTP}.")
    return value


def _arguments(value: Any) -> Mapping[str, Any]:
    if not isinstance(value or {}, Mapping):
        raise _refusal(
            "has arguments that are no object: write names and values of the notifier's own."
        )
    if wrong := list(_problems_of_arguments(value or {})):
        raise _refusal(*wrong)
    return value or {}


def _kinds(value: Any) -> frozenset[AlertKind] | None:
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise _refusal("has kinds that are no list.")
    if unknown := [kind for kind in value if kind not in _SENT]:
        raise _refusal(
            f"has unknown kinds {', '.join(map(str, unknown))}: known are {', '.join(_SENT)}."
        )
    return frozenset(map(AlertKind, value))


def _severity(value: Any) -> Severity:
    if value and value not in tuple(Severity):
        raise _refusal(f"has an unknown min_severity: known are {', '.join(Severity)}.")
    return Severity(value or Severity.INFO)


def _refusal(*sentences: str) -> InvalidRequestError:
    """Sentences that quote no value: it may be secret."""
    return InvalidRequestError(sentences)


class ChannelKeys(BaseModel):
    """The keys of one entry of ``alert_channels``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    notifier: Annotated[
        str,
        Read("import path of a class", _notifier, {"type": "string"}),
        Field(description="A class of Airflow's notifiers."),
    ] = ""
    arguments: Annotated[
        Mapping[str, Any],
        Read("object", _arguments, {"type": ["null", "object"]}),
        Field(description="What the notifier is made with; texts may name the alert."),
    ] = {}
    kinds: Annotated[
        frozenset[AlertKind] | None,
        Read("list of kinds", _kinds, {"type": ["null", "array"], "items": {"enum": list(_SENT)}}),
        Field(description="Only these kinds of alerts. Left out: all that are sent."),
    ] = None
    min_severity: Annotated[
        Severity,
        Read(", ".join(Severity), _severity, {"type": ["null", "string"], "enum": list(Severity)}),
        Field(description="Nothing that is less severe."),
    ] = Severity.INFO


def read_channels(setting: object) -> tuple[tuple[Channel, ...], tuple[str, ...]]:
    """The channels that can be used, and everything that is wrong with the others.

    :param setting: ``alert_channels``, as plain JSON types.
    :returns: channels; and sentences that name the entry and the remedy.
    """
    if not isinstance(setting, list | tuple):
        return (), ("alert_channels is not a list: write [{…}], also for one channel.",)
    channels, problems = [], []
    for index, entry in enumerate(setting):
        keys, wrong = _read(entry)
        problems += [f"alert_channels[{index}] {problem}" for problem in wrong]
        if keys is not None and not wrong:
            name = f"alert_channels[{index}] ({keys.notifier.rpartition('.')[2]})"
            channels.append(
                Channel(name, keys.notifier, keys.arguments, keys.kinds, keys.min_severity)
            )
    return tuple(channels), tuple(problems)


def _read(entry: object) -> tuple[ChannelKeys | None, list[str]]:
    if not isinstance(entry, Mapping):
        return None, ['is no object: write {"notifier": "…", "arguments": {…}}.']
    keys = ChannelKeys.model_fields
    wrong = [
        f"has the unknown key {key!r}: known are {', '.join(keys)}."
        for key in entry
        if key not in keys
    ]
    given = {key: value for key, value in entry.items() if key in keys}
    read = read_values(ChannelKeys, {"notifier": None, **given})
    return read.values, [*wrong, *read.problems]


def _problems_of_arguments(arguments: Mapping[str, Any]) -> Iterator[str]:
    words = dict.fromkeys(ALERT_FIELDS, "")
    for name, value in arguments.items():
        try:
            _render(value, words)
        except TemplateError as error:
            yield (
                f"has the argument {name!r}, which cannot be rendered ({error}): alert has "
                f"{', '.join(ALERT_FIELDS)}."
            )


def _render(value: Any, words: Mapping[str, Any]) -> Any:
    if isinstance(value, str):
        return _environment().from_string(value).render(alert=words)
    if isinstance(value, Mapping):
        return {name: _render(item, words) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_render(item, words) for item in value]
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
