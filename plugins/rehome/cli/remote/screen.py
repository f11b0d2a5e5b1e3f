"""A plan in the terminal: what its page's data say, and no figure of our own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rehome.cli.output import clean, local_moment, local_time
from rehome.domain.text import whole_percent
from rehome.reporting.number_text import brokers_list, bytes_text, count_text, rate_text

if TYPE_CHECKING:
    from rich.console import RenderableType

Data = Mapping[str, Any]

BAR_COLUMNS = 30
FLYING_SHOWN = 8
_SUMMARY = ["headline", "state_left", "next_step"]
COMMANDS = {
    "run": "run",
    "next_window": "next-window",
    "pause": "pause",
    "resume": "resume",
    "change_throttle": "throttle",
    "change_moves": "moves",
    "cancel": "cancel",
    "roll_back": "rollback",
}
"""The word of ``rehome`` for each request that a person may make of a plan."""
_STYLES = {
    "running": "cyan",
    "done": "green",
    "failed": "red",
    "cancelled": "yellow",
    "paused": "yellow",
}


def standing(plan: Data) -> str:
    """The state in words, with what was asked for meanwhile."""
    state = str(plan["state"]).replace("_", " ")
    if plan["cancel_requested"]:
        return f"{state}, cancel asked for"
    if plan["pause_requested"]:
        return f"{state}, pause asked for"
    if plan.get("asking"):
        return f"{state}, waits for approval"
    return f"{state}, for the next window" if plan["for_next_window"] else state


def plan_lines(plan: Data) -> Iterator[str]:
    """One plan in plain lines."""
    yield f"{plan['title']}: {standing(plan)}"
    yield f"plan {plan['plan_id']}"
    yield _about(plan)
    if plan["started_at"] is not None or plan["state"] in ("running", "paused"):
        yield from filter(None, (_figures(plan), _times(plan), _speed(plan), _moves(plan)))
    else:
        yield _size(plan)
    if plan["waits"]:
        yield f"{plan['waits']} {plan['waits_next_step'] or ''}".rstrip()
    elif plan["state"] != "running":
        yield from filter(None, (plan["headline"], plan["state_left"], plan["next_step"]))
    yield from attention_lines(plan)
    if plan["files_problem"]:
        yield f"! {plan['files_problem']}"


def attention_lines(plan: Data) -> Iterator[str]:
    """What hurts, and what to do about it; at the end, what may be asked of the plan."""
    plan_id, may = plan["plan_id"], set(plan["controls"])
    if plan["asking"]:
        yield f"! A person has to approve it: rehome approve {plan_id}"
    for each in plan["attention"]:
        since = f" Since {local_time(each['since'])}." if each["since"] else ""
        can = each["control"] in may
        step = each["next_step_here"] if can else each["next_step"]
        how = f" (rehome {COMMANDS[each['control']]} {plan_id})" if can else ""
        yield f"! {each['text']}{since} {step}{how}".rstrip()


def _about(plan: Data) -> str:
    parts = [f"on {plan['connection'] or plan['cluster_id']}", f"asked for by {plan['asked_by']}"]
    if plan["approved_by"]:
        parts.append(f"approved by {plan['approved_by']}")
    if plan["started_at"]:
        parts.append(f"started {local_moment(plan['started_at'])}")
    if plan["ended_at"]:
        parts.append(f"ended {local_moment(plan['ended_at'])}")
    return ", ".join(parts)


def _size(plan: Data) -> str:
    """Of a plan that has not started."""
    parts = [
        f"{count_text(plan['moves']['all'], 'move')}, {bytes_text(plan['bytes']['planned'])} "
        "to copy",
        f"predicted {plan['predicted']}" if plan["predicted"] else "",
        f"window closes {local_moment(plan['window_end'])}" if plan["window_end"] else "",
    ]
    return ", ".join(filter(None, parts))


def _figures(plan: Data) -> str:
    size = plan["bytes"]
    total = f" ({size['total_text']})" if size["total_text"] else ""
    received = f"; {size['received_text']}" if size["received_text"] else ""
    return f"{whole_percent(size['fraction'])} %: {size['text']}{total}{received}"


def _times(plan: Data) -> str:
    ends, running = plan["ends"], plan["state"] == "running"
    end = ""
    if running and ends["least"]:
        end = f"ends from {local_time(ends['least'])} to {local_time(ends['most'])}"
    elif running:
        end = f"end not known: {ends['not_known']}"
    over = plan["ended"]
    parts = (
        end,
        f"{'took' if over else 'so far'} {plan['elapsed']}" if plan["elapsed"] else "",
        f"predicted {plan['predicted']}" if plan["predicted"] else "",
        f"window closes {local_time(plan['window_end'])}"
        if plan["window_end"] and not over
        else "",
    )
    return ", ".join(filter(None, parts))


def _speed(plan: Data) -> str:
    if plan["state"] != "running":
        return ""
    pace, throttle = plan["pace"], plan["throttle"]
    rate = pace["bytes_per_s"]
    parts = [f"{rate_text(rate)} in all" if rate is not None else f"pace: {pace['not_known']}"]
    if throttle["set_on_brokers"]:
        parts.append(
            f"throttle {rate_text(throttle['bytes_per_s'])} per broker (set on brokers: "
            f"{rate_text(throttle['set_on_brokers'])})"
        )
    elif throttle["unthrottled"]:
        parts.append("without a throttle")
    parts += throttle["by_broker"]
    if throttle["max_moves_per_broker"]:
        parts.append(f"moves at once per broker: {throttle['max_moves_per_broker']}")
    return ", ".join(parts)


def _moves(plan: Data) -> str:
    moves = plan["moves"]
    as_of = f", seen {local_time(plan['seen_at'])}" if plan["seen_at"] else ""
    flying = f"{moves['in_flight']} in flight, {moves['wait']} wait, " if not plan["ended"] else ""
    return f"{flying}{moves['done']} of {moves['all']} moves done{as_of}"


def picture(plan: Data, moves: Iterable[Data]) -> RenderableType:
    """One plan for a terminal that shows it anew again and again.

    :param moves: in flight, as the table of partitions has them.
    """
    style = _STYLES.get(plan["state"], "")
    head = Table.grid(expand=True)
    head.add_column(ratio=1)
    head.add_column(justify="right")
    head.add_row(Text(clean(plan["title"]), "bold"), Text(standing(plan), f"bold {style}"))
    head.add_row(Text(clean(_about(plan)), "dim"), Text(plan["plan_id"], "dim"))
    parts: list[RenderableType] = [head]
    if plan["started_at"] is not None:
        parts.append(_bar(plan, style))
        lines = filter(None, (_times(plan), _speed(plan), _moves(plan)))
        parts += [Text(clean(line)) for line in lines]
    else:
        parts.append(Text(clean(_size(plan))))
    if plan["state"] != "running":
        names = ["waits", "waits_next_step"] if plan["waits"] else _SUMMARY
        parts += [Text(clean(plan[name])) for name in names if plan[name]]
    parts += [Text(clean(line), "yellow") for line in attention_lines(plan)]
    if plan["state"] == "running":
        parts += _tables(plan, list(moves))
    return Group(*parts)


def _bar(plan: Data, style: str) -> RenderableType:
    row = Table.grid(padding=(0, 1))
    bar = ProgressBar(
        total=1.0,
        completed=plan["bytes"]["fraction"],
        width=BAR_COLUMNS,
        complete_style=style or "white",
        finished_style="green",
    )
    row.add_row(bar, Text(clean(_figures(plan))))
    return row


def _tables(plan: Data, moves: list[Data]) -> list[RenderableType]:
    brokers = Table("Broker", "Receives", "Sends", "On disk now", "After", box=None)
    for line in plan["brokers"]:
        brokers.add_row(
            str(line["broker"]),
            _rate(line["in_bytes_per_s"], line["moves_in"]),
            _rate(line["out_bytes_per_s"], line["moves_out"]),
            bytes_text(line["bytes_now"]),
            bytes_text(line["bytes_after"]),
        )
    left_out = plan["brokers_left_out"]
    if left_out:
        brokers.add_row("…", f"{left_out} more", "", "", "")
    flying = Table("In flight", "From", "To", "Behind", "Rate", box=None)
    for move in moves[:FLYING_SHOWN]:
        behind = move["bytes_behind"]
        flying.add_row(
            clean(f"{move['topic']}-{move['partition']}"),
            brokers_list(move["current"]),
            brokers_list(move["target"]),
            "–" if behind is None else bytes_text(behind),
            "–" if move["bytes_per_s"] is None else rate_text(move["bytes_per_s"]),
        )
    if len(moves) > FLYING_SHOWN:
        flying.add_row("…", f"{len(moves) - FLYING_SHOWN} more", "", "", "")
    tables = [brokers] if plan["brokers"] else []
    return [*tables, *([flying] if moves else [])]


def _rate(rate: float | None, moves: int) -> str:
    if not rate and not moves:
        return "–"
    speed = "–" if rate is None else rate_text(rate)
    return f"{speed}, {count_text(moves, 'move')}" if moves else speed
