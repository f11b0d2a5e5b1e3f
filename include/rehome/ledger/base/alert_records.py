"""Rows of the ledger's table of alerts as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rehome.alerts.kinds import AlertKind


@dataclass(frozen=True, slots=True)
class RaisedAlert:
    """Something that people are to know, as the ledger needs it.

    :param subject: what it is about: the id of a plan, of a cluster, or of a run.
    :param occurrence: another one makes it another alert, though the subject is the same.
    :param again_s: while it lasts it is sent again after so many seconds; None = never.
    :param alert: all of it, to send it again later.
    :param reminds_of: it is raised only while this occurrence of it lasts: what was closed, or has
        was replaced by another one meanwhile, stays as it is. None = it is raised whatever was.
    """

    kind: AlertKind
    subject: str
    occurrence: str
    plan_id: str | None
    cluster_id: str | None
    again_s: float | None
    alert: Mapping[str, Any]
    reminds_of: str | None = None

    @property
    def key(self) -> tuple[AlertKind, str]:
        """What there is one row of."""
        return self.kind, self.subject


@dataclass(frozen=True, slots=True)
class DueAlert:
    """An alert that this process, and no other, is to send now.

    :param message_id: the same whenever it is sent again because nobody knows whether it came, so
        that receivers can drop doubles; another one when it is sent again because it lasts.
    :param channels: only through these; None = through all.
    """

    kind: AlertKind
    subject: str
    alert: Mapping[str, Any]
    message_id: str
    channels: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class AlertRecord:
    """What is known of one alert. Aware UTC times.

    :param closed_at: when it was over; None = it lasts, as far as is known.
    :param claimed_until: until then a process is sending it; None = none is.
    :param sent_at: when it was last sent to all channels, whether they took it or not.
    :param tried_at: when it was last sent to any.
    :param message_id: of the last message; None = an older Rehome has sent it.
    :param failed_channels: channels that have not taken it yet, and why.
    """

    kind: AlertKind
    subject: str
    occurrence: str
    plan_id: str | None
    cluster_id: str | None
    first_raised_at: datetime
    last_raised_at: datetime
    closed_at: datetime | None
    claimed_until: datetime | None
    sent_at: datetime | None
    tried_at: datetime | None
    times_sent: int
    alert: Mapping[str, Any]
    message_id: str | None = None
    failed_channels: Mapping[str, str] = field(default_factory=dict)
