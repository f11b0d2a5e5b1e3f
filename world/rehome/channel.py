"""A webhook that gets the alerts of one installation, and does not always answer as it should."""

from __future__ import annotations

import enum
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from rehome.alerts.channels import WEBHOOK, Channel
from rehome.notifiers.webhook import GIVE_UP_S, TIMEOUT_S, WebhookError
from world.running.scheduler import NEVER, Actor, Scheduler

if TYPE_CHECKING:
    from rehome.ledger.base.alert_records import DueAlert
    from world.running.ledgers import LedgerSite

CHANNEL = Channel("webhook", WEBHOOK)
ANSWERED_S, LATE_S, AGAIN_S = 0.2, 9.0, 1.0


class Answers(enum.StrEnum):
    """How the webhook answers."""

    AT_ONCE = "at_once"
    LATE = "late"  # after nine seconds
    NEVER = "never"
    HANGS = "hangs"  # the notifier that waits for it never ends
    REFUSES = "refuses"  # with an error of the server
    TWICE = "twice"  # its first answer is lost: it gets the message again


@dataclass(frozen=True, slots=True)
class Sending:
    """An alert that a process is about to send.

    :param of: kind, subject, occurrence, and when it was first raised: what there is one alert of.
    :param ledger: that has it: one that was restored may not know that it was sent.
    """

    at: float
    of: tuple[str, str, str, str]
    message_id: str
    ledger: str


@dataclass
class Receiver:
    """What gets them.

    :ivar how: it answers now.
    :ivar got: how often each alert has come, by the id of its message.
    :ivar sendings: what processes were about to send; ``waited``: seconds that each one has waited
        for it, by its actor.
    """

    scheduler: Scheduler
    how: Answers = Answers.AT_ONCE
    got: Counter[str] = field(default_factory=Counter)
    sendings: list[Sending] = field(default_factory=list)
    waited: defaultdict[tuple[str, int], float] = field(default_factory=lambda: defaultdict(float))

    def takes(self, body: str) -> bool:
        """An attempt to send a message; False = no answer, or one of an error."""
        match self.how:
            case Answers.HANGS:
                self.scheduler.idle(NEVER)
            case Answers.NEVER:
                self.scheduler.wait(TIMEOUT_S)
                return False
            case Answers.REFUSES:
                self.scheduler.wait(ANSWERED_S)
                return False
            case Answers.LATE:
                self.scheduler.wait(LATE_S)
        self.scheduler.wait(ANSWERED_S)
        found = json.loads(body)
        ids = [found["message_id"], *(each["message_id"] for each in found.get("alerts", ()))]
        first = not self.got[ids[0]]
        self.got.update(ids)
        if self.how is Answers.TWICE and first:
            self.scheduler.wait(TIMEOUT_S)
            return False
        return True

    def notifier(self, *, body: str, message_id: str) -> Post:
        """In the place of a notifier's class."""
        assert message_id
        return Post(self, body)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Meanwhile a process waits for what it sends."""
        actor, began = self.scheduler.current, self.scheduler.at_s
        assert actor is not None
        yield
        self.waited[actor.name, actor.number] += self.scheduler.at_s - began

    def about_to_send(self, site: LedgerSite, due: list[DueAlert]) -> None:
        """Write down what a process has claimed."""
        with site.apart():
            ledger = site.ledger()
            rows = {(row.kind, row.subject): row for row in ledger.alerts()}
            for one in due:
                row = rows[one.kind, one.subject]
                first = row.first_raised_at.isoformat()
                of = (row.kind.value, row.subject, row.occurrence, first)
                where = f"{ledger.ledger_id} {site.restored}"
                self.sendings.append(Sending(self.scheduler.at_s, of, one.message_id, where))


@dataclass(frozen=True)
class Post:
    """A notifier that posts one message, with the bounds of the webhook's."""

    receiver: Receiver
    body: str

    def notify(self, _context: Any) -> None:
        """Send it, again and again where that may help.

        :raises WebhookError: it was not taken.
        """
        scheduler = self.receiver.scheduler
        began = scheduler.at_s
        while not self.receiver.takes(self.body):
            if scheduler.at_s - began >= GIVE_UP_S:
                raise WebhookError("The server gives no good answer")
            scheduler.wait(AGAIN_S)


class Thread:
    """A thread of the process that runs now, as ``threading.Thread`` is used."""

    def __init__(
        self,
        scheduler: Scheduler,
        spawn: Callable[[Callable[[], Any]], Actor],
        *,
        target: Callable[..., Any],
        args: tuple[Any, ...],
        daemon: bool,
        name: str,
    ) -> None:
        assert daemon, f"{name} outlives its process"
        self._scheduler = scheduler
        self._spawn = spawn
        self._target = partial(target, *args)
        self._actor: Actor | None = None

    def start(self) -> None:
        """Have it run."""
        self._actor = self._spawn(self._target)

    def join(self, timeout: float) -> None:
        """Wait for its end."""
        assert self._actor is not None
        self._scheduler.join(self._actor, timeout)
