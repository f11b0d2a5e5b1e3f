"""What each kind of alert means: the table of the handbook, and what the code goes by."""

from __future__ import annotations

from dataclasses import dataclass

from rehome.alerts.kinds import AlertKind, Repeats
from rehome.domain.run.findings import Severity
from rehome.domain.time_range import DAY_S


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One kind of alert.

    :param title: what a subject line says of it, after its plan or cluster.
    :param raised: when it is sent.
    :param closes: when it is over; after that, the same counts as new.
    :param next_step: what a person does, in general; the alert itself says it for its case.
    """

    kind: AlertKind
    title: str
    severity: Severity
    repeats: Repeats
    raised: str
    closes: str
    next_step: str

    @property
    def sent(self) -> bool:
        """Whether it goes to channels; else the page alone shows it."""
        return self.repeats is not Repeats.ON_THE_PAGE

    @property
    def runbook(self) -> str:
        """Its page in the handbook, from the project's folder; "" = it has none of its own."""
        return f"docs/alerts/{self.kind}.md" if self.sent else ""

    def again_s(self, alert_again_s: float) -> float | None:
        """How long after it was sent it is sent again, while it lasts; None = never."""
        match self.repeats:
            case Repeats.AGAIN:
                return alert_again_s
            case Repeats.DAILY:
                return max(DAY_S, alert_again_s)
            case _:
                return None


CATALOG: tuple[CatalogEntry, ...] = (
    CatalogEntry(
        AlertKind.DATA_LOST,
        "messages are lost",
        Severity.ERROR,
        Repeats.ONCE,
        "Of a partition in flight, messages are gone that all its in-sync replicas had: its high "
        "watermark is lower than before. Another partition of the plan is reported anew.",
        "Never: they stay lost.",
        "Keep the disks of the brokers that had the partition; find out which broker came back "
        "without its data, or whether an unclean election was allowed.",
    ),
    CatalogEntry(
        AlertKind.FAILED,
        "failed",
        Severity.ERROR,
        Repeats.AGAIN,
        "A run has failed: its plan ended badly or was cancelled, or there was no plan.",
        "It is one event. A run that is cleared and fails again is reported again; of scheduled "
        "runs that make no plan, such as sweeps, the DAG counts, not the run.",
        "Read the report and fix the cause, then trigger a new run; or roll back what was moved.",
    ),
    CatalogEntry(
        AlertKind.ORPHANED,
        "its run sends no heartbeat",
        Severity.ERROR,
        Repeats.AGAIN,
        "The sweep finds a plan that runs, and whose run has sent no heartbeat for `lease_s`.",
        "The run polls again, another run resumes the plan, or the plan has ended.",
        "Resume the plan in a new run, or cancel it.",
    ),
    CatalogEntry(
        AlertKind.DAG_PAUSED,
        "its DAG is paused",
        Severity.ERROR,
        Repeats.AGAIN,
        "The sweep, or the page, finds a plan that runs, and whose DAG is paused in Airflow: no "
        "task of its run starts.",
        "A sweep finds the DAG unpaused, or the plan has ended.",
        "Unpause the DAG: the run goes on by itself. Or cancel the plan.",
    ),
    CatalogEntry(
        AlertKind.OWED,
        "something is still to be taken back",
        Severity.ERROR,
        Repeats.AGAIN,
        "Throttles, cordons or copies of a plan that runs no more could not be taken back: at its "
        "end, and at each sweep.",
        "The sweep has taken all of it back.",
        "Bring back brokers that are away; the sweep then takes it back.",
    ),
    CatalogEntry(
        AlertKind.WRONG_CLUSTER,
        "a connection leads to another cluster",
        Severity.ERROR,
        Repeats.DAILY,
        "A connection leads to another cluster than it, or its entry in the clusters file, is "
        "bound to; or two entries are for one cluster. Nothing starts through it. One for each "
        "connection, by whatever reads where it leads.",
        "A read finds that it leads to what it is bound to: it was corrected, or a person has "
        "bound it anew.",
        "Correct the connection; if the cluster was rebuilt, bind it on the page *Clusters*.",
    ),
    CatalogEntry(
        AlertKind.FAILED_MOVES,
        "moves have failed",
        Severity.ERROR,
        Repeats.ON_THE_PAGE,
        "Moves of a plan have failed.",
        "Never: they stay failed.",
        "Read the cause of each in the table of moves.",
    ),
    CatalogEntry(
        AlertKind.NOT_CANCELLED,
        "a cancel is refused",
        Severity.ERROR,
        Repeats.AGAIN,
        "A move in flight could not be cancelled: the controller, or a broker, refuses. It is "
        "asked again, less and less often. After `stall_timeout_s` a plan that is to end does so "
        "all the same, and copies that continue are listed as pending cleanup.",
        "It was cancelled or has ended, or with the plan's end.",
        "Bring back the brokers that hold the old replicas.",
    ),
    CatalogEntry(
        AlertKind.STALLED,
        "nothing moves",
        Severity.ERROR,
        Repeats.AGAIN,
        "Nothing has moved for `stall_alert_s`, or for as long as the throttle explains.",
        "Five minutes after something moved again, or with the plan's end.",
        "Check the destination brokers and the rate of the throttle.",
    ),
    CatalogEntry(
        AlertKind.OUTPACED,
        "producers write more than the throttle lets through",
        Severity.ERROR,
        Repeats.AGAIN,
        "Copies at a broker have gained nothing on their sources for 45 s, and what producers "
        "write to these partitions takes most of what the throttle lets through.",
        "Five minutes after they gain again, or with the plan's end.",
        "Raise the throttle above the rate that the alert names, or move when less is written.",
    ),
    CatalogEntry(
        AlertKind.HEALING_STOPPED,
        "healing has stopped",
        Severity.ERROR,
        Repeats.ONCE,
        "`watch_clusters` would heal a finding, and within a day the watch rules' `heals_a_day` "
        "runs were started, or `rebalance_in_window` is paused in Airflow.",
        "A snapshot is judged, and healing may go on.",
        "Read why the runs failed, or why findings come back; or unpause `rebalance_in_window`.",
    ),
    CatalogEntry(
        AlertKind.THROTTLE_RESTORED,
        "a throttle is taken away again and again",
        Severity.WARNING,
        Repeats.AGAIN,
        "A throttle that copies in flight rely on was taken away by another client for the third "
        "time, or could not be put back.",
        "Five minutes without that, or with the plan's end.",
        "Find out who takes it away: kafka-reassign-partitions does.",
    ),
    CatalogEntry(
        AlertKind.THROTTLE_LOWERED,
        "the throttle was lowered",
        Severity.WARNING,
        Repeats.AGAIN,
        "The governor has lowered the throttle because other partitions suffer.",
        "Five minutes after it is back at what was asked for, or with the plan's end.",
        "Usually none: it grows again by itself. Find out what else loads the brokers.",
    ),
    CatalogEntry(
        AlertKind.SILENT_BROKERS,
        "brokers do not answer",
        Severity.WARNING,
        Repeats.ON_THE_PAGE,
        "Brokers of the plan did not answer at the last poll.",
        "They answer.",
        "Check these brokers.",
    ),
    CatalogEntry(
        AlertKind.WINDOW_WILL_BE_MISSED,
        "the window will be missed",
        Severity.WARNING,
        Repeats.AGAIN,
        "At this pace the last copy would end after the window: the time left is more than a "
        "tenth above what the window leaves.",
        "Five minutes after the rest fits again, or when the plan stops running.",
        "Raise the throttle, or leave the rest to the next window.",
    ),
    CatalogEntry(
        AlertKind.PAUSED_AT_WINDOW_END,
        "paused at the window's end",
        Severity.INFO,
        Repeats.ONCE,
        "The window has ended, and some of the plan is left.",
        "A run resumes the plan, or it has ended. The next window's end is reported again.",
        "None where `rebalance_in_window` is unpaused, and for heals; else resume it.",
    ),
    CatalogEntry(
        AlertKind.HELD,
        "waits for another client",
        Severity.WARNING,
        Repeats.ON_THE_PAGE,
        "The plan waits for another client's reassignment to end.",
        "It has ended, or something of the plan has moved.",
        "Wait; the parameter `additional` lets a plan run at the same time.",
    ),
    CatalogEntry(
        AlertKind.DISK_FORECAST,
        "disks will be full",
        Severity.WARNING,
        Repeats.DAILY,
        "By the growth of its replicas a broker's disks will be full within `forecast_days`: as "
        "they lie now, at each roll-up of snapshots; and as a plan would leave them, when it is "
        "made.",
        "A roll-up finds no such broker any more. Of a plan: it has ended.",
        "Move replicas away, shorten the retention, or add disks.",
    ),
    CatalogEntry(
        AlertKind.FINDING,
        "something is not well",
        Severity.WARNING,
        Repeats.ONCE,
        "`watch_clusters` opens a finding: a broker is dead, partitions are under-replicated, "
        "brokers are out of balance and the like. One for each cluster, kind and subject. "
        "Leftover throttles and full disks have alerts of their own; under-replicated partitions "
        "have none while a dead broker or an offline log dir explains them. The alert has the "
        "severity of the finding's kind: error, warning or info.",
        "The finding closes: as many snapshots in a row do not show it as the watch rules say.",
        "Read the cluster's page. Where the rules propose or heal, a run is started.",
    ),
    CatalogEntry(
        AlertKind.FOREIGN_LEFTOVERS,
        "throttles that no plan has set",
        Severity.WARNING,
        Repeats.DAILY,
        "The sweep finds throttles that no plan has set, and nothing is being reassigned.",
        "A sweep finds none any more.",
        "Ask who set them; kafka-configs --alter --delete-config takes them back.",
    ),
    CatalogEntry(
        AlertKind.CHANNEL_FAILED,
        "an alert was not sent",
        Severity.WARNING,
        Repeats.ON_THE_PAGE,
        "An alert could not be sent through a channel. The page of its plan says so; of one about "
        "no plan, the page of its cluster.",
        "The channel has taken it: it is tried again while the alert lasts, and by the sweep for a "
        "day.",
        "Check the channel's connection and its entry in `alert_channels`.",
    ),
    CatalogEntry(
        AlertKind.APPROVAL_WAITING,
        "waits for approval",
        Severity.INFO,
        Repeats.AGAIN,
        "A run waits for a person to approve its plan. Each new question is reported. While "
        "there is no answer, each sweep reminds of it, and once more in the last hour before its "
        "window closes.",
        "It is answered, its window has closed, or the run has ended.",
        "Open the page; approve it, send it back or reject it.",
    ),
    CatalogEntry(
        AlertKind.PAUSED,
        "paused by a person",
        Severity.INFO,
        Repeats.ONCE,
        "A person has paused the plan, and its run has ended.",
        "A run resumes the plan, or it has ended.",
        "Resume the plan, or cancel it: a paused plan holds its cluster.",
    ),
    CatalogEntry(
        AlertKind.DONE,
        "done",
        Severity.INFO,
        Repeats.ONCE,
        "A run has ended as it should: its plan is done and verified; or, of a dry run, made.",
        "It is one event.",
        "None. The report compares the prediction with what happened.",
    ),
    CatalogEntry(
        AlertKind.SEVERAL,
        "several alerts",
        Severity.INFO,
        Repeats.ONCE,
        "More than five alerts are to be sent at once through a channel: they are one message, as "
        "severe as the worst of them. Its JSON has each whole, with its id, in `alerts`.",
        "It is one message; each of its alerts closes by itself.",
        "Look at the first one: the others may have the same cause.",
    ),
)
"""Every kind, once, the worst first."""

_BY_KIND = {entry.kind: entry for entry in CATALOG}


def entry_of(kind: AlertKind) -> CatalogEntry:
    """What the catalog says of a kind."""
    return _BY_KIND[kind]
