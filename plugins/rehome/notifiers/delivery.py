"""Sends alerts through every channel that takes them, each channel in a thread of its own."""

from __future__ import annotations

import contextvars
import importlib
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowNotFoundException, conf
from airflow.sdk import BaseHook, BaseNotifier
from airflow.sdk.log import redact

from rehome import installation
from rehome.alerts.channels import WEBHOOK, Channel, read_channels
from rehome.alerts.several import about_all
from rehome.notifiers.webhook import WEBHOOK_CONNECTION, why_unsafe
from rehome.run.ports import AlertChannels, Item

if TYPE_CHECKING:
    from rehome.alerts.alert import Alert
DEADLINE_S = 60.0
"""No task waits longer than this for a channel to take its alerts. Below that of the ledger's
claims."""

WITHIN_S = 600.0
"""In this time a task waits for a channel no longer than its limit, however often it sends."""

MOST_SINGLE = 5
"""So many alerts at once are messages of their own."""

log = logging.getLogger(__name__)


def channels() -> tuple[tuple[Channel, ...], tuple[str, ...]]:
    """Those that are set up, and what is wrong with the setting.

    The connection ``rehome_webhook``, where there is one, is a channel without being named.
    """
    receivers, problems = read_channels(installation.settings().alert_channels)
    has_webhook = any(
        channel.notifier == WEBHOOK
        and channel.arguments.get("webhook_conn_id", WEBHOOK_CONNECTION) == WEBHOOK_CONNECTION
        for channel in receivers
    )
    if not has_webhook:
        try:
            BaseHook.get_connection(WEBHOOK_CONNECTION)
        except AirflowNotFoundException:
            return receivers, problems
        receivers = (*receivers, Channel(WEBHOOK_CONNECTION, WEBHOOK))
    return receivers, problems


def problems() -> tuple[str, ...]:
    """What keeps channels from being used, as far as that can be known before anything is sent."""
    receivers, wrong = channels()
    return (*wrong, *filter(None, map(_unusable, receivers)))


def _unusable(channel: Channel) -> str:
    try:
        notifier_class(channel.notifier)
        if channel.notifier != WEBHOOK:
            return ""
        conn_id = channel.arguments.get("webhook_conn_id", WEBHOOK_CONNECTION)
        why = why_unsafe(BaseHook.get_connection(conn_id))
    except ValueError as error:
        return f"{channel.name}: {error}."
    except AirflowNotFoundException:
        return f"{channel.name}: there is no connection {conn_id}."
    return f"{channel.name}: {why}." if why else ""


class _Waits:
    """How long a task has waited: for which channel, from when until when, in monotonic seconds.
    In all it waits for ``most_s`` for a channel.
    """

    def __init__(self) -> None:
        self.most_s = DEADLINE_S
        self._times: list[tuple[str, float, float]] = []

    def left_s(self, channel: str) -> float:
        """For so long it may still wait now."""
        now = time.monotonic()
        self._times = [each for each in self._times if each[2] > now - WITHIN_S]
        waited = sum(ended - began for name, began, ended in self._times if name == channel)
        return max(0.0, self.most_s - waited)

    def add(self, channel: str, began: float, ended: float) -> None:
        """It has waited."""
        self._times.append((channel, began, ended))


_of_callbacks = _Waits()
_of_task: contextvars.ContextVar[_Waits | None] = contextvars.ContextVar(
    "rehome_waits_of_task", default=None
)


@contextmanager
def one_task() -> Iterator[None]:
    """Meanwhile all that is sent counts as one task's: a slow channel holds it once."""
    token = _of_task.set(_Waits())
    try:
        yield
    finally:
        _of_task.reset(token)


@contextmanager
def one_callback() -> Iterator[None]:
    """Meanwhile all that is sent counts as of the callbacks of one process, which share a limit.

    Airflow's DAG processor runs all callbacks of a file's runs that are due in one process, and
    kills it after its timeout for a file: alerts would be lost, and the DAG be taken for deleted
    until its file is parsed again. Half of that time is for reading the file and the plans.
    """
    timeout_s = conf.getfloat("dag_processor", "dag_file_processor_timeout", fallback=50.0)
    _of_callbacks.most_s = min(DEADLINE_S, timeout_s / 2)
    token = _of_task.set(_of_callbacks)
    try:
        yield
    finally:
        _of_task.reset(token)


class SetUpChannels(AlertChannels):
    """Those of the setting ``alert_channels``, and the connection ``rehome_webhook``."""

    def deliver_all(self, items: Sequence[Item]) -> list[dict[str, str]]:
        """See the function of this name."""
        return deliver_all(items)

    def problems(self) -> tuple[str, ...]:
        """See the function of this name."""
        return problems()

    def one_task(self) -> AbstractContextManager[None]:
        """See the function of this name."""
        return one_task()

    def one_callback(self) -> AbstractContextManager[None]:
        """See the function of this name."""
        return one_callback()


def deliver(alert: Alert) -> dict[str, str]:
    """Send one alert: see :func:`deliver_all`."""
    (results,) = deliver_all([Item(alert)])
    return results


def deliver_all(items: Sequence[Item]) -> list[dict[str, str]]:
    """Send alerts, each channel by itself, one after the other; never raises for what one does.

    A channel that has more than ``MOST_SINGLE`` of them gets one message about all. What a channel
    has not taken within the task's limit (``DEADLINE_S``, or less for a callback), for all alerts
    together, counts as failed; a task that has waited that long for a channel before does not try
    it.

    :returns: of each item: channel → why it has not taken it; "" = it has.
    """
    receivers, problems = channels()
    waits = _of_task.get() or _Waits()
    began = time.monotonic()
    results: list[dict[str, str]] = [{} for _ in items]
    senders = []
    for channel in receivers:
        numbers = [
            number
            for number, item in enumerate(items)
            if channel.takes(item.alert) and (item.only is None or channel.name in item.only)
        ]
        left_s = waits.left_s(channel.name)
        for number in () if left_s else numbers:
            results[number][channel.name] = (
                f"It was not tried: {waits.most_s:g} s were waited before"
            )
        if numbers and left_s:
            alerts = [(number, items[number].alert) for number in numbers]
            senders.append((_begin_sending(channel, alerts, results, waits.most_s), left_s))
    for sender, left_s in senders:
        sender.thread.join(max(0.0, began + left_s - time.monotonic()))
        sender.over.set()
        waits.add(sender.channel, began, min(sender.ended_at, time.monotonic()))
    results = [dict(result) for result in results]
    for item, result in zip(items, results, strict=True):
        if problems and (item.only is None or AlertChannels.setting in item.only):
            result[AlertChannels.setting] = " ".join(problems)
        for name, why in result.items():
            if why:
                log.error("The alert %s was not sent through %s: %s", item.alert.kind, name, why)
    return results


@dataclass
class _Sender:
    """What sends through one channel.

    :ivar over: nothing more is begun; ``ended_at``: when it had sent all, in monotonic seconds.
    """

    channel: str
    thread: threading.Thread
    over: threading.Event
    ended_at: float = inf


def _begin_sending(
    channel: Channel,
    alerts: Sequence[tuple[int, Alert]],
    results: Sequence[dict[str, str]],
    most_s: float,
) -> _Sender:
    """In a thread that ends with its process at the latest: a notifier may hang for ever. It begins
    with no other alert when the event is set.
    """
    over = threading.Event()
    messages = [([number], alert) for number, alert in alerts]
    if len(alerts) > MOST_SINGLE:
        messages = [([number for number, _ in alerts], about_all([each for _, each in alerts]))]
    for numbers, _ in messages:
        for number in numbers:
            results[number][channel.name] = f"It did not end within {most_s:g} s"

    def send() -> None:
        for numbers, alert in messages:
            if over.is_set():
                return
            answer = _send_through(channel, alert)
            for number in numbers:
                results[number][channel.name] = answer
        sender.ended_at = time.monotonic()

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(send,), daemon=True, name=channel.name)
    sender = _Sender(channel.name, thread, over)
    thread.start()
    return sender


def _send_through(channel: Channel, alert: Alert) -> str:
    """Why a channel has not taken it; "" = it has."""
    try:
        notifier = notifier_class(channel.notifier)(**channel.arguments_for(alert))
        notifier.notify(_context(alert))
    except Exception as error:  # noqa: BLE001 a notifier may be any code: whatever it raises is reported
        reason = " ".join(str(redact(str(error))).split()) or "no reason given"
        return f"{type(error).__name__}: {reason}"
    return ""


def notifier_class(path: str) -> type[BaseNotifier]:
    """The class of this import path.

    :raises ValueError: there is none, or it is no notifier; says what to do.
    """
    module, _, name = path.rpartition(".")
    try:
        notifier = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise ValueError(
            f"its notifier {path} cannot be imported ({error}): install the Airflow provider "
            "that has "
            "it, or correct its name"
        ) from None
    if not (isinstance(notifier, type) and issubclass(notifier, BaseNotifier)):
        raise ValueError(f"its notifier {path} is none of Airflow's notifiers: correct its name")
    return notifier


def _context(alert: Alert) -> Any:
    """For notifiers that read it: there may be no task, and no run."""
    facts: Mapping[str, Any] = alert.facts
    return {"params": {}, "reason": alert.text, "run_id": facts.get("run_id")}
