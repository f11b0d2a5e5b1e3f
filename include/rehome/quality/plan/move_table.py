"""Table ``moves``: the plan's moves, with the facts that each must agree with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rehome.domain.actions import Action
from rehome.domain.array_types import Ints, Mask
from rehome.domain.kafka import ANY_LOG_DIR, BrokerId, LogDirKey
from rehome.quality.engine.results import ROWS_SHOWN
from rehome.quality.facts.broker_places import places
from rehome.quality.facts.evacuated import emptied_brokers, evacuated_log_dirs
from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.rack_spread import better_places, crowding
from rehome.quality.facts.ragged_lists import Ragged
from rehome.quality.facts.unplannable import takers
from rehome.quality.plan.leadership import leadership_of, reorders
from rehome.quality.plan.limit_table import outside
from rehome.quality.plan.replacements import replacement_columns
from rehome.quality.plan.rules import EXPLICIT
from rehome.quality.plan.set_spread import badly_placed_by_set

_BROKERS = pa.list_(pa.int32())
_PATHS = pa.list_(pa.string())


def moves_table_with_facts(checked: Checked) -> pa.Table:
    """moves.parquet with the further columns that the rules name."""
    table = checked.moved.table.drop_columns(["causes"])
    columns = {
        "causes": pc.list_value_length(checked.moved.table.column("causes")),
        **_of_snapshot(checked),
        **_wrong_brokers(checked),
        **_of_isr(checked),
        **leadership_of(checked),
        **_spread(checked),
        **_in_files(checked),
        **_log_dirs(checked),
        **_requested_columns(checked),
        **replacement_columns(checked),
        **_evacuation_columns(checked),
    }
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def _of_snapshot(checked: Checked) -> dict[str, pa.Array]:
    moved = checked.moved
    replicas, log_dirs = moved.partitions.lists_at(moved.at)
    in_scope = np.append(checked.in_scope, True)  # -1: another rule names what there is not
    return {
        "times_planned": pa.array(moved.times_planned),
        "snapshot_replicas": replicas,
        "snapshot_log_dirs": log_dirs,
        "snapshot_size": pa.array(moved.size, mask=moved.at < 0),
        "in_flight": pa.array(moved.in_flight),
        "leader_is_live": pa.array(  # null where nothing is copied
            np.isin(moved.leader, checked.brokers[checked.live]), mask=moved.adding.lengths == 0
        ),
        "in_scope": pa.array(in_scope[moved.at]),
    }


def _wrong_brokers(checked: Checked) -> dict[str, pa.Array]:
    """Per move, brokers that its target must not contain, or that must not get a copy; null if
    there are none.
    """
    moved, request = checked.moved, checked.request
    target, adding = moved.target, moved.adding
    beyond = adding
    if request.action is Action.REBALANCE:
        both = np.concatenate([adding.values, moved.removing.values])
        rows = np.concatenate([adding.row, moved.removing.row])
        beyond = Ragged.of_rows(both, rows, len(moved.at))
    dead = ~np.isin(target.values, checked.brokers[checked.live])
    first = np.isin(np.arange(len(target.values)), target.offsets)
    # A new order only needs its first broker alive, and not even that where it stays the first.
    newly_first = first & (moved.target.first != moved.current.first)[target.row]
    dead &= newly_first | ~reorders(checked)[target.row]
    lists = {
        "adding": adding,
        "not_live": target.where(dead),
        "drained": target.where(_among(target.values, checked.drained)),
        "left": moved.current.where(_among(moved.current.values, checked.drained)),
        "taken_online": moved.removing.where(~moved.removing.missing_in(_online(checked))),
        "offline_kept": target.where(~target.missing_in(moved.offline)),
        "not_of_its_set": adding.where(outside(checked, adding, moved.at)),
        "closed": adding.where(_among(adding.values, checked.disks.closed)),
        "excluded": adding.where(_among(adding.values, request.exclude_brokers)),
        "no_destination": adding.where(~_among(adding.values, request.destinations)),
        "outside": beyond.where(~_among(beyond.values, request.brokers)),
    }
    return {name: brokers.to_arrow(empty_is_null=True) for name, brokers in lists.items()}


def _online(checked: Checked) -> Ragged:
    """Brokers of each move's partition whose replica is online."""
    partitions = checked.moved.partitions
    return partitions.chosen_at(checked.moved.at, ~partitions.offline)


def _of_isr(checked: Checked) -> dict[str, pa.Array]:
    """Replicas in sync before and after each move, and whether the preferred leader can lead. A
    copy that was asked for by name counts as kept: it is in sync when the move ends.
    """
    moved, explicit = checked.moved, checked.request.action in EXPLICIT
    in_sync, kept = moved.in_sync, moved.target.where(~moved.target.missing_in(moved.in_sync))
    able = moved.target.where(
        ~(moved.target.missing_in(moved.in_sync) & moved.target.missing_in(moved.adding))
    )
    first = Ragged(moved.target.first, np.arange(len(moved.at) + 1))
    return {
        "current_count": pa.array(moved.current.lengths),
        "target_count": pa.array(moved.target.lengths),
        "distinct_count": pa.array(moved.target.distinct_lengths),
        "in_sync_now": in_sync.to_arrow(),
        "in_sync_found": pa.array(in_sync.lengths),
        "in_sync_kept": pa.array(kept.lengths + (moved.adding.lengths if explicit else 0)),
        "in_sync_to_keep": pa.array(  # null where no replica is removed
            np.minimum(in_sync.lengths, moved.target.lengths),
            mask=moved.target.lengths >= moved.current.lengths,
        ),
        "leader_is_able": pa.array(
            ~first.missing_in(able)
            | (able.lengths == 0)
            | (moved.target.first == moved.current.first)
        ),
    }


def _among(values: Ints, brokers: Collection[BrokerId]) -> Mask:
    return np.isin(values, np.array(sorted(brokers), np.int64))


def _spread(checked: Checked) -> dict[str, pa.Array]:
    """Badly placed replicas per level of the racks, before and after."""
    moved, ids = checked.moved, checked.brokers
    left = checked.live & ~_among(ids, {*checked.drained, *emptied_brokers(checked)})
    group = (
        checked.allowed_brokers.number[moved.at]
        if len(checked.allowed_brokers.number)
        else moved.at * 0
    )
    columns: dict[str, pa.Array] = {}
    rows, levels = {}, {}
    for name, hosts, lists in (
        ("before", checked.live, moved.current),
        ("after", left, moved.target),
    ):
        rows[name] = lists.pad(
            places(ids, np.where(_counts_nowhere(checked, lists), -1, lists.values))
        )
        levels[name] = badly_placed_by_set(checked, hosts, rows[name], group)
        if name == "before":
            # Counts like a replica on a dead broker: the data of a failed log dir is lost.
            levels[name] = [count + _replicas_in_failed_dirs(checked) for count in levels[name]]
        for level, count in enumerate(levels[name], start=1):
            columns[f"badly_{name}_{level}"] = pa.array(count, pa.int64())
    left_of = _without_failed(checked, left)
    for move, hosts in left_of.items():
        one = slice(move, move + 1)
        anew = badly_placed_by_set(checked, hosts, rows["after"][one], group[one])
        for on_level, badly in zip(levels["after"], anew, strict=True):
            on_level[one] = badly
    nothing = np.zeros((1, len(moved.at)), np.int64)
    before, after = (np.concatenate([nothing, *(c[None] for c in levels[n])]) for n in levels)
    worse = np.flatnonzero((after > before).any(axis=0))
    better: list[list[int]] = [[] for _ in moved.at]
    losing = worse[_loses_offline(checked)[worse]]
    takes = takers(checked) if len(losing) else None
    # A lower replication factor keeps the replicas in sync, whatever their racks.
    count, in_sync_count = moved.current.lengths, moved.in_sync.lengths
    free = (moved.target.lengths < count) & (in_sync_count < count)
    for move in np.union1d(worse[:ROWS_SHOWN], losing).tolist():
        hosts = left_of.get(move, left) & checked.allowed_brokers.may[group[move]]
        better_brokers = better_places(
            checked.rack_paths, hosts, rows["after"][move], rows["before"][move]
        )
        better[move] = ids[better_brokers].tolist()
        if takes is not None and move in losing:
            # What is offline spreads nothing: a copy in the same rack is better than none.
            free[move] |= not takes(ids[better_brokers], int(moved.size[move]))
    lighter = np.zeros(len(moved.at), bool)
    crowds = [crowding(checked.rack_paths, rows[name][worse]) for name in ("before", "after")]
    counts = [(rows[name][worse] >= 0).sum(axis=1) for name in ("before", "after")]
    lighter[worse] = (crowds[1] < crowds[0]) & (counts[1] == counts[0])
    for level in range(1, len(before)):
        # A level may only get worse where one above it gets better.
        eased = free | (after[1:level] < before[1:level]).any(axis=0)
        eased |= lighter & (level > 1)
        columns[f"badly_at_most_{level}"] = pa.array(before[level], mask=eased)
    return columns | {
        "repaired": pa.array(after.sum(axis=0) < before.sum(axis=0)),
        "better": pa.array(better, _BROKERS),
    }


def _counts_nowhere(checked: Checked, lists: Ragged) -> Mask:
    """Per value, whether a broker outside the partition's set keeps its replica, or loses it to a
    lower replication factor. Such replicas are ignored for the racks of the set, before and after.
    """
    moved = checked.moved
    apart = outside(checked, lists, moved.at)
    kept = ~lists.missing_in(moved.current) & ~lists.missing_in(moved.target)
    lowered = (moved.target.lengths < moved.current.lengths)[lists.row]
    ignored: Mask = apart & (kept | lowered)
    return ignored


def _replicas_in_failed_dirs(checked: Checked) -> Ints:
    """(n,) replicas of each move's partition in failed log dirs of live brokers."""
    offline = checked.moved.offline
    return offline.where(np.isin(offline.values, checked.brokers[checked.live])).lengths


def _loses_offline(checked: Checked) -> Mask:
    """(n,) moves by which an offline replica leaves its broker."""
    gone = checked.moved.offline
    moves: Mask = np.isin(
        np.arange(len(checked.moved.at)), gone.row[gone.missing_in(checked.moved.target)]
    )
    return moves


def _without_failed(checked: Checked, left: Mask) -> dict[int, Mask]:
    """By index of a move: the brokers (B,) that are left for its partition if it leaves failed log
    dirs of live brokers. A broker takes no new replica of a partition in place of one that it has.
    """
    moved = checked.moved
    gone = moved.offline.where(
        np.isin(moved.offline.values, checked.brokers[checked.live])
        & moved.offline.missing_in(moved.target)
    )
    left_of_move: dict[int, Mask] = {}
    for broker, move in zip(gone.values.tolist(), gone.row.tolist(), strict=True):
        left_of_move[move] = left_of_move.get(move, left) & (checked.brokers != broker)
    return left_of_move


def _in_files(checked: Checked) -> dict[str, pa.Array]:
    """The entries of Kafka's files for each move; null if there is none."""
    columns = {}
    for name, file in (("sent", checked.sent), ("rollback", checked.taken_back)):
        entries = file.beside(checked.moved.table)
        columns[f"{name}_replicas"] = entries.column("replicas")
        columns[f"{name}_log_dirs"] = entries.column("log_dirs")
    return columns


def _log_dirs(checked: Checked) -> dict[str, pa.Array]:
    """Named log dirs that cannot be written to; null if there are none."""
    wrong: dict[int, list[str]] = {}
    for item in checked.moved.named_log_dirs:
        if (item.broker, item.path) not in checked.disks.usable:
            wrong.setdefault(item.move, []).append(f"{item.broker}:{item.path}")
    rows = [wrong.get(row) for row in range(len(checked.moved.at))]
    return {"unusable_log_dirs": pa.array(rows, _PATHS)}


def _requested_columns(checked: Checked) -> dict[str, pa.Array]:
    """The entry of the operator's own file for each move; null if there is none."""
    if checked.request.action is not Action.REASSIGN:
        return {}
    entries = [checked.requested.get(partition) for partition in checked.planned]
    lies_in = checked.moved.lies_in(np.arange(len(entries)))
    planned = checked.moved.table.column("target_log_dirs").to_pylist()
    elsewhere: list[list[str] | None] = []
    for entry, today, paths in zip(entries, lies_in, planned, strict=True):
        brokers, entry_paths = entry or ([], [])
        path_of_broker = dict(zip(brokers, paths, strict=False))
        elsewhere.append(
            [
                f"{broker}:{path}"
                for broker, path in zip(brokers, entry_paths, strict=False)
                if path not in (ANY_LOG_DIR, today.get(broker), path_of_broker.get(broker))
            ]
            or None
        )
    replicas = [None if entry is None else entry[0] for entry in entries]
    return {
        "requested_replicas": pa.array(replicas, _BROKERS),
        "requested_elsewhere": pa.array(elsewhere, _PATHS),
    }


def _evacuation_columns(checked: Checked) -> dict[str, pa.Array]:
    """Per move, lists of brokers, null if empty: that change although none of their log dirs is
    emptied; that keep a replica in an emptied log dir; that could put a copy into an emptied log
    dir; that lose a replica although another of their log dirs has space for it.
    """
    if checked.request.action is not Action.EVACUATE_LOG_DIRS:
        return {}
    gone, headroom = evacuated_log_dirs(checked), _headroom_left(checked)
    today = checked.moved.lies_in(np.arange(len(checked.moved.at)))
    columns = {name: list[list[BrokerId] | None]() for name in _NAMES}
    rows = (checked.moved.table.column(n).to_pylist() for n in ("current", "target"))
    target_dirs = checked.moved.table.column("target_log_dirs").to_pylist()
    for current, target, paths, lies, size in zip(
        *rows, target_dirs, today, checked.moved.size.tolist(), strict=True
    ):
        dir_of_broker = dict(zip(target, paths or [ANY_LOG_DIR] * len(target), strict=False))
        inside = {broker for broker in current if (broker, lies.get(broker)) in gone}
        leaves = [broker for broker in current if broker not in dir_of_broker]
        moved = [b for b, path in dir_of_broker.items() if path not in (ANY_LOG_DIR, lies.get(b))]
        brokers_by_column = {
            "not_evacuated": [b for b in (*leaves, *moved) if b in current and b not in inside],
            "kept_inside": [b for b in inside if b in dir_of_broker and b not in moved],
            "into_evacuated": [
                b
                for b, path in dir_of_broker.items()
                if ((b, path) in gone and b in (*moved, *(set(dir_of_broker) - set(current))))
                or (b not in current and path == ANY_LOG_DIR and _may_choose(b, gone, checked))
            ],
            "could_stay": [b for b in leaves if b in inside and headroom.get(b, -1) >= size],
        }
        for name, brokers in brokers_by_column.items():
            columns[name].append(sorted(brokers) or None)
    return {name: pa.array(values, _BROKERS) for name, values in columns.items()}


_NAMES = ("not_evacuated", "kept_inside", "into_evacuated", "could_stay")


def _may_choose(broker: BrokerId, gone: frozenset[LogDirKey], checked: Checked) -> bool:
    """Whether a broker could put a copy into an emptied log dir, because that takes replicas."""
    return any(place in gone for place in checked.disks.usable if place[0] == broker)


def _headroom_left(checked: Checked) -> dict[BrokerId, float]:
    """Headroom of the emptiest remaining log dir of each broker, after all copies that are sent
    there.
    """
    disks, gone = checked.disks, evacuated_log_dirs(checked)
    arriving: Counter[LogDirKey] = Counter()
    for item in checked.moved.named_log_dirs:
        place = item.broker, item.path
        arriving[disks.first.get(place, place)] += item.size_bytes
    left: dict[BrokerId, float] = {}
    for place, headroom in disks.headroom.items():
        if place not in gone:
            here = float("inf") if headroom is None else headroom - arriving[disks.first[place]]
            left[place[0]] = max(left.get(place[0], -1.0), here)
    return left
