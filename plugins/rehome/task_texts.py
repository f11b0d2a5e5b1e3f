"""What Airflow's UI says of each task: its name, and its documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TEXTS: Mapping[str, tuple[str, str]] = {
    "snapshot": (
        "Take a snapshot",
        "Checks the parameters and the rights, and reads brokers, racks, log dirs, topics and "
        "replicas into Parquet. It changes nothing.",
    ),
    "plan": (
        "Plan",
        "One Spark application: Great Expectations gate the snapshot, the planner places "
        "replicas, Great Expectations gate the plan. It changes nothing. Why a plan is refused "
        "is at the end of the log.",
    ),
    "dry_run": (
        "Dry run",
        "Predicts the controller's answer for every partition and the time that the plan takes. "
        "It checks rights, disks, drift, settings that have changed since the plan was made and "
        "the throttle, and changes nothing. The report is behind the button *Report* of the tab "
        "*Details*.",
    ),
    "approve": (
        "Approve",
        "Waits until a person approves the plan, where the parameter `approval` or the "
        "connection's policy asks for it. The approval holds only for this plan, rate and window, "
        "with the cluster's caps, broker sets and targets of that time.",
    ),
    "throttle": (
        "Set the throttle",
        "Writes what it is about to change, and the earlier values, to the ledger. Then it "
        "sets the rate and the lists of throttled replicas.",
    ),
    "execute": (
        "Start moves",
        "Sends the first moves to the controller, as far as brokers have free slots.",
    ),
    "progress": (
        "Follow the moves",
        "Waits without a worker while replicas are copied. At each poll it starts what fits, "
        "governs the throttle, and notices a stall. Its log has the table of KIP-179.",
    ),
    "clear_throttle": (
        "Clear the throttle",
        "Runs whatever happened. It cancels what is still in flight of this plan, takes back what "
        "Rehome set, restores what was there before, and proves that by reading.",
    ),
    "verify": (
        "Verify",
        "Proves each partition from a fresh read: replicas in the plan's order, nothing in flight.",
    ),
    "restore_leaders": (
        "Restore preferred leaders",
        "Has the preferred leader of each moved partition elected.",
    ),
    "drained": (
        "Check drained brokers",
        "After a drain: proves that its brokers are empty. What has appeared there meanwhile is "
        "moved by the tasks of the group that follows. Else it is skipped.",
    ),
    "report": (
        "Write the report",
        "Runs whatever happened. It writes one HTML file, behind the button *Report* of the tab "
        "*Details*, and the note of the run.",
    ),
    "verdict": (
        "Verdict",
        "Runs whatever happened, and last. It fails the run when the plan did not end well, by "
        "the ledger and the proof alone.",
    ),
    "done": (
        "Done",
        "Only in DAGs of people's own: what comes after the reassignment waits for it. Skipped "
        "where the plan is not done.",
    ),
    "place": (
        "Place the replicas",
        "Chooses brokers for the new replicas: spread over racks, and going on where the topic's "
        "existing partitions left off. It changes nothing.",
    ),
    "create": (
        "Create the partitions",
        "Creates the partitions, and proves by reading that they are where they were placed.",
    ),
    "roll_up": (
        "Roll up whole days",
        "Adds each whole day of snapshots to the history that plans read, and removes what is "
        "older than the settings keep.",
    ),
    "sweep": (
        "Sweep",
        "Takes back throttles, cordons and copies that could not be taken back in time. It alerts "
        "about plans whose run sends no heartbeat. What no plan has set it only lists.",
    ),
    "watch": (
        "Judge snapshots",
        "Judges each fresh snapshot, and opens and closes findings in the ledger. Its log has a "
        "table of those that are open, and says why nothing is started for one.",
    ),
    "start_remedy": (
        "Start remedies",
        "Triggers a run of `reassign_partitions` for a finding, where the watch rules allow it: "
        "at most one for each cluster. Skipped where there is none.",
    ),
    "send_alerts": (
        "Send alerts",
        "Sends each alert that has not reached its channels, for a minute at most; what is left is "
        "sent by the next sweep. It runs beside what the findings start, so that a slow channel "
        "delays nothing. A channel that fails does not fail it.",
    ),
    "all_judged": (
        "All clusters judged",
        "Fails where a cluster could not be judged, so that the run does.",
    ),
    "plan_fleet": (
        "Plan the clusters that are due",
        "One Spark application, a task of it for each cluster, with both gates. It records the "
        "plans as those of dry runs, and carries nothing out. Its log says why a cluster is not "
        "due.",
    ),
    "remove_old_data": (
        "Remove old data",
        "Removes plans that ended longer ago than they are kept, with their files, and rows of the "
        "ledger that are as old. Its log names them. With dry_run it removes nothing.",
    ),
    "look": (
        "Look",
        "Reads everything that any client has in flight on the cluster. Its log "
        "describes what is asked about: whose it is, since when it is known, leader, throttles, "
        "bytes, rate and time left, and what can never end. It changes nothing.",
    ),
    "follow": (
        "Follow",
        "For the action follow: shows KIP-179's table until all of it has ended. It fails where "
        "some of it has ended otherwise than it began. It changes nothing.",
    ),
    "cancel": (
        "Cancel",
        "For the action cancel: cancels what was approved, and nothing else; refused where "
        "something else was set meanwhile. It puts replicas in the order of before where a "
        "snapshot shows it, and proves by reading what is left.",
    ),
    "adopt": (
        "Adopt",
        "For the action adopt: makes what was approved a plan of Rehome. The ledger owns it first; "
        "then the throttle is set. Nothing is asked of the controller: it is in flight already.",
    ),
    "request": (
        "Pass the request on",
        "Writes the request to the ledger: the plan's next poll carries it out. Where no poll "
        "comes, it acts itself, or has the next task start a run.",
    ),
    "start": (
        "Start a run",
        "Triggers the run of `reassign_partitions` that carries the request out. Skipped where "
        "none is needed.",
    ),
}


def task(task_id: str) -> dict[str, Any]:
    """A task's id, name and documentation, as arguments of its operator."""
    name, text = TEXTS[task_id]
    return {"task_id": task_id, "task_display_name": name, "doc_md": text}
