"""What a judge has found to be wrong."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Kind(enum.StrEnum):
    """Kinds of violations: what must never be, whatever happens."""

    LEFT_BEHIND = "left_behind"
    """Something of ours is on the cluster, and no ledger names it as owed."""
    NOT_AS_WANTED = "not_as_wanted"
    """A value is neither ours nor what its other owners last wanted."""
    EMPTY_LIST = "empty_list"
    """A list that nobody wants any more is there, with nothing in it."""
    TAKEN_AWAY = "taken_away"
    """A write of ours has taken something that others want."""
    UNTHROTTLED = "unthrottled"
    """A copy of ours ran without the throttle that was asked for, though we could have seen it."""
    OVER_ITS_RATE = "over_its_rate"
    """A broker could send or receive more for a plan than was asked for."""
    TOO_MANY_NEW = "too_many_new"
    """A partition got more new replicas at once than its plan may give it."""
    FOREIGN_UNTHROTTLED = "foreign_unthrottled"
    """A copy of others lost a throttle of their own, or got more than it allows, by us."""
    UNCORDONED = "uncordoned"
    """A broker that a plan drains, and has cordoned, lost that to the end of another plan."""
    BELOW_MIN_ISR = "below_min_isr"
    """A call of ours took a partition below its min.insync.replicas."""
    WRONG_LOG_DIR = "wrong_log_dir"
    """A replica was sent to a log dir that is neither planned nor where it was before."""
    TOO_MANY_CALLS = "too_many_calls"
    """A poll, or a decision, has asked the brokers more often than is stated."""
    TAKEN_OVER = "taken_over"
    """A reassignment of others was replaced, or cancelled, by us, who could have seen it."""
    MISPLACED = "misplaced"
    """A partition's replicas are none that anybody has asked for."""
    NEVER_ENDS = "never_ends"
    """A plan goes on for ever, and waits for nobody."""
    NAMES_NOBODY = "names_nobody"
    """A plan waits for a person, and nobody was told."""
    UNAPPROVED = "unapproved"
    """A plan that a person had to approve was sent to the controller before one had."""
    ASKS_ON = "asks_on"
    """The same cancel is asked for again and again, at every poll."""
    PAST_WINDOW = "past_window"
    """Something of a plan is in flight when its window has ended."""
    CANCEL_FAILS = "cancel_fails"
    """A plan that waits for a person cannot be cancelled."""
    GOES_ON = "goes_on"
    """A copy of a plan that has ended goes on, and the ledger does not say so."""
    FALSE_CLAIM = "false_claim"
    """Something was said that was at no moment true."""
    LOST_UNSAID = "lost_unsaid"
    """Acknowledged messages of a moved partition are gone, and the plan is called done."""
    FAILED_FOR_NOTHING = "failed_for_nothing"
    """A plan is called failed, though nobody has disturbed its run, and nothing of it is left to be
    moved."""
    HEALED_WRONGLY = "healed_wrongly"
    """Watching has started or carried out a heal of what is not dead, while a data centre is away,
    too soon again, too often, or beyond its budget."""
    FALSE_FINDING = "false_finding"
    """A finding says in the end what has not been so for long, or leaves out what has."""
    WRONG_CLUSTER = "wrong_cluster"
    """Something of ours has changed a cluster to which its connection was never to lead."""
    ASKS_PAST_WINDOW = "asks_past_window"
    """People are asked about a run whose window has closed."""
    LAPSED_UNTOLD = "lapsed_untold"
    """Nobody has answered in time, and no alert says so."""
    WINDOW_BLOCKED = "window_blocked"
    """The run of a window waits for an answer to another run."""
    TWO_ENTRIES = "two_entries"
    """A plan has begun while two entries of the clusters file were for its cluster."""
    TWO_PLANS = "two_plans"
    """Two plans of one ledger were carried out at once on one cluster."""
    HELD_BY_CHANNEL = "held_by_channel"
    """A process waited for its alerts to be sent for longer than is stated."""
    ALERT_LOST = "alert_lost"
    """An alert that lasts has not come to its receiver, which takes all that is sent."""
    ALERT_UNLIKE = "alert_unlike"
    """One alert was sent under two ids: its receiver cannot tell that it is the same."""
    GATE_REFUSED = "gate_refused"
    """The gate refuses a plan that the planner has made."""
    CRASH = "crash"
    """A process has raised an error that is no error of its own kind."""
    STUCK = "stuck"
    """Something goes on for ever without time passing."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One of them.

    :param subject: what it is about; two of the same kind and subject are one fault.
    :param at: seconds since the world began.
    """

    kind: Kind
    subject: str
    text: str
    at: float

    def __str__(self) -> str:
        return f"{self.kind} at {self.at:.1f} s: {self.text}"
