"""Columns on leaders before and after each move, for actions on leaders."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rehome.domain.actions import Action
from rehome.domain.array_types import Mask
from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.ragged_lists import Ragged

ELECTS = (Action.DEMOTE, Action.ELECT_PREFERRED)
"""Actions whose moves may keep the replica order and only elect another leader."""


def elects(checked: Checked) -> Mask:
    """(n,) moves that only elect the preferred leader: another replica leads now."""
    moved = checked.moved
    if checked.request.action not in ELECTS:
        return np.zeros(len(moved.at), bool)
    current, target = (moved.table.column(name).to_pylist() for name in ("current", "target"))
    target_dirs = moved.table.column("target_log_dirs").to_pylist()
    same = [a == b and not dirs for a, b, dirs in zip(current, target, target_dirs, strict=True)]
    elected: Mask = np.array(same, bool) & (moved.leader != moved.target.first)
    return elected


def reorders(checked: Checked) -> Mask:
    """(n,) moves that keep the set of brokers and copy nothing."""
    moved = checked.moved
    dir_counts = pc.list_value_length(moved.table.column("target_log_dirs")).to_numpy()
    same: Mask = (moved.adding.lengths == 0) & (moved.removing.lengths == 0) & (dir_counts == 0)
    return same


def leadership_of(checked: Checked) -> dict[str, pa.Array]:
    """Per move, whether it elects, and how it concerns demoted brokers."""
    moved, demoted = checked.moved, np.array(checked.demoted, np.int64)
    only_led = elects(checked)
    first = Ragged(moved.target.first, np.arange(len(moved.at) + 1))
    prefers = np.isin(moved.target.first, demoted)
    return {
        "elects": pa.array(only_led),
        "demoted_first": pa.array(moved.target.first, mask=~prefers),
        "led_by_demoted": pa.array(
            np.isin(moved.current.first, demoted) | np.isin(moved.leader, demoted)
        ),
        "elected_out_of_sync": pa.array(
            moved.target.first, mask=~(only_led & first.missing_in(moved.in_sync))
        ),
    }
