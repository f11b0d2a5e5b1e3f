"""Pictures of what each DAG does, step by step, for its documentation in Airflow's UI.

Airflow renders Markdown without HTML and without Mermaid, and shows images no wider than 300 px:
so a picture is a column, drawn here and served by the page.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

_WIDTH = 300
_BOX, _GAP, _EDGE, _LEGEND = 42, 14, 10, 18
# Airflow's own theme does not reach into an image: the card is light in both.
_CARD, _INK, _QUIET, _ARROW = "#f6f7f9", "#1c2430", "#475467", "#98a3b3"


class StepKind(enum.Enum):
    """What a step does to the cluster; with its colour, and its words in the legend."""

    READS = ("#e8eef7", "#3b5b8c", "only reads")
    ASKS = ("#fbf1dc", "#8a5a00", "a person decides")
    CHANGES = ("#e6f3f4", "#0e7c86", "changes the cluster")
    APART = ("#f0f1f3", "#4a5568", "asks no cluster")
    ALWAYS = ("#e3f4ea", "#137a4b", "runs whatever happens")

    def __init__(self, fill: str, line: str, words: str) -> None:
        self.fill = fill
        self.line = line
        self.words = words


@dataclass(frozen=True, slots=True)
class Step:
    """One or more tasks.

    :param tasks: their ids, as the DAG has them.
    """

    tasks: tuple[str, ...]
    text: str
    kind: StepKind


def _step(tasks: str, text: str, kind: StepKind) -> Step:
    return Step(tuple(tasks.split()), text, kind)


_REASSIGN = (
    _step("snapshot", "reads brokers, racks, disks and replicas", StepKind.READS),
    _step("plan", "Spark: gate, planner, gate", StepKind.READS),
    _step("dry_run", "predicts every answer, and the time", StepKind.READS),
    _step("approve", "waits, where approval is asked for", StepKind.ASKS),
    _step("throttle", "writes down what was set, then sets it", StepKind.CHANGES),
    _step("execute progress", "starts moves as slots become free", StepKind.CHANGES),
    _step("clear_throttle", "takes back what was set, and proves it", StepKind.ALWAYS),
    _step("verify", "proves each partition by a fresh read", StepKind.READS),
    _step("restore_leaders", "preferred leaders lead again", StepKind.CHANGES),
    _step("drained", "proves that drained brokers are empty", StepKind.READS),
    _step("report verdict", "one HTML file; is the run green?", StepKind.ALWAYS),
)
FLOWS: Mapping[str, tuple[Step, ...]] = {
    "reassign_partitions": _REASSIGN,
    "rebalance_in_window": _REASSIGN,
    "control_reassignment": (
        _step("request", "passes the request on to the plan", StepKind.CHANGES),
        _step("start", "triggers a run, where one is needed", StepKind.CHANGES),
    ),
    "add_partitions": (
        _step("snapshot", "reads brokers, racks and topics", StepKind.READS),
        _step("place", "chooses brokers for the new replicas", StepKind.READS),
        _step("dry_run", "the controller validates, and does nothing", StepKind.READS),
        _step("approve", "waits, where approval is asked for", StepKind.ASKS),
        _step("create", "creates the partitions, and reads them", StepKind.CHANGES),
    ),
    "foreign_reassignments": (
        _step("look", "reads and describes what is in flight", StepKind.READS),
        _step("follow", "shows it until all of it has ended", StepKind.READS),
        _step("approve", "a person is asked about each by name", StepKind.ASKS),
        _step("cancel", "cancels what was approved, and reads", StepKind.CHANGES),
        _step("adopt progress", "makes it a plan, under a throttle", StepKind.CHANGES),
        _step("clear_throttle", "takes back what was set, and proves it", StepKind.ALWAYS),
        _step("verify", "proves each partition by a fresh read", StepKind.READS),
        _step("report verdict", "one HTML file; is the run green?", StepKind.ALWAYS),
    ),
    "collect_snapshots": (
        _step("snapshot", "reads the cluster into the warehouse", StepKind.READS),
        _step("roll_up", "adds whole days to the history", StepKind.READS),
    ),
    "watch_clusters": (
        _step("watch", "judges fresh snapshots; findings", StepKind.READS),
        _step("start_remedy", "triggers runs that remedy findings", StepKind.CHANGES),
        _step("send_alerts", "sends what has been found", StepKind.READS),
        _step("all_judged", "fails where a cluster could not be judged", StepKind.READS),
    ),
    "plan_fleet": (_step("plan_fleet", "plans what windows may carry out", StepKind.READS),),
    "remove_old_data": (
        _step("remove_old_data", "removes plans and rows that are old", StepKind.APART),
    ),
    "sweep_throttles": (_step("sweep", "takes back what dead runs have left", StepKind.CHANGES),),
}
"""Each DAG's steps, in order."""


def flow_svg(dag_id: str) -> str:
    """The picture of a DAG. :raises KeyError: there is none."""
    steps = FLOWS[dag_id]
    kinds = list(dict.fromkeys(step.kind for step in steps))
    rows = _EDGE + len(steps) * (_BOX + _GAP) - _GAP + _EDGE
    height = rows + len(kinds) * _LEGEND + _EDGE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" font-family="system-ui, sans-serif" role="img">',
        f"<title>{escape(flow_text(dag_id))}</title>",
        f'<rect width="{_WIDTH}" height="{height}" rx="12" fill="{_CARD}"/>',
        *(part for at, step in enumerate(steps) for part in _box(at, step, at < len(steps) - 1)),
        *(part for at, kind in enumerate(kinds) for part in _legend(rows + at * _LEGEND, kind)),
        "</svg>",
    ]
    return "\n".join(parts)


def flow_text(dag_id: str) -> str:
    """The same for those who do not see it."""
    return " → ".join(" and ".join(step.tasks) for step in FLOWS[dag_id])


def _box(at: int, step: Step, goes_on: bool) -> Iterator[str]:
    top, left, width = _EDGE + at * (_BOX + _GAP), _EDGE, _WIDTH - 2 * _EDGE
    dashes = ' stroke-dasharray="5 3"' if step.kind is StepKind.ALWAYS else ""
    yield (
        f'<rect x="{left}" y="{top}" width="{width}" height="{_BOX}" rx="8" '
        f'fill="{step.kind.fill}" stroke="{step.kind.line}"{dashes}/>'
    )
    yield (
        f'<text x="{left + 12}" y="{top + 18}" font-size="13" font-weight="650" fill="{_INK}">'
        f"{escape(', '.join(step.tasks))}</text>"
    )
    yield (
        f'<text x="{left + 12}" y="{top + 34}" font-size="12" fill="{_QUIET}">'
        f"{escape(step.text)}</text>"
    )
    if goes_on:
        foot, middle = top + _BOX, _WIDTH // 2
        yield (
            f'<path d="M{middle} {foot}v{_GAP - 3}m-4 -4l4 4l4 -4" fill="none" '
            f'stroke="{_ARROW}" stroke-width="1.5"/>'
        )


def _legend(top: int, kind: StepKind) -> Iterator[str]:
    yield (
        f'<rect x="{_EDGE + 2}" y="{top + 3}" width="12" height="10" rx="3" fill="{kind.fill}" '
        f'stroke="{kind.line}"/>'
    )
    yield (
        f'<text x="{_EDGE + 22}" y="{top + 12}" font-size="11.5" fill="{_QUIET}">'
        f"{escape(kind.words)}</text>"
    )
