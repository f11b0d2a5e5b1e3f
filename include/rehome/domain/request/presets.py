"""Presets: values for several parameters under one name.

A preset fills the parameters that were left at their default; what differs from its default was
chosen by a person, and stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rehome.domain.actions import Action
from rehome.domain.request.request import Preset
from rehome.domain.request.validation import is_blank

GENTLE_BYTES_PER_S = 20_000_000


@dataclass(frozen=True, slots=True)
class Contents:
    """What a preset is for, and what it sets.

    :param title: as forms show it.
    :param values: parameter → value.
    :param until_window_closes: it also sets ``window_end``: to the time at which the maintenance
        window closes that is open, or opens next.
    """

    title: str
    about: str
    values: Mapping[str, Any] = field(default_factory=dict)
    until_window_closes: bool = False


PRESETS: Mapping[Preset, Contents] = {
    Preset.NONE: Contents("None: the fields below as they are", "Sets nothing."),
    Preset.CHECK_ONLY: Contents(
        "Check only: plan and predict, change nothing",
        "Plans, and predicts what would happen. Nothing is changed. Without an action, of a "
        "rebalance.",
        {"action": Action.REBALANCE.value, "dry_run": True},
    ),
    Preset.DRAIN_GENTLY: Contents(
        "Drain gently: empty brokers slowly, after an approval",
        "Empties brokers at 20 MB/s, two moves at a time, after a person has approved the plan. "
        "Name the brokers.",
        {
            "action": Action.DRAIN.value,
            "throttle": GENTLE_BYTES_PER_S,
            "max_moves_per_broker": 2,
            "approval": True,
        },
    ),
    Preset.EXPAND: Contents(
        "Expand: fill new brokers, after an approval",
        "Fills brokers up to their share, at the rate that brokers can spare, after a person has "
        "approved the plan. Name the new brokers.",
        {"action": Action.EXPAND.value, "approval": True},
    ),
    Preset.REBALANCE_TONIGHT: Contents(
        "Rebalance tonight: start now, end with the maintenance window",
        "Brings brokers to within 5 % of their share. It begins when it is triggered, and has "
        "nothing in flight when the maintenance window closes that is open or opens next: what "
        "does not fit in stays where it is. Trigger it in the evening.",
        {"action": Action.REBALANCE.value, "tolerance": 0.05},
        until_window_closes=True,
    ),
}


@dataclass(frozen=True, slots=True)
class Filled:
    """Parameters with a preset's values.

    :param by_preset: what the preset has set.
    :param kept: what it would have set, but for a value that was chosen.
    :param by_targets: what the cluster's targets have set (:mod:`rehome.domain.request.targets`).
    :param chosen: parameters that are known to be chosen, even where they are at their default.
    """

    params: Mapping[str, Any]
    preset: Preset
    by_preset: Mapping[str, Any]
    kept: Mapping[str, Any]
    by_targets: Mapping[str, Any] = field(default_factory=dict)
    chosen: Collection[str] = frozenset()

    @property
    def texts(self) -> str:
        """For the log: what the preset set, what it left, and what the targets set; "" = nothing
        but the parameters themselves.
        """
        texts = (
            [f"The cluster's targets set {_values_text(self.by_targets)}."]
            if self.by_targets
            else []
        )
        if self.preset is not Preset.NONE:
            left = f" It leaves {_values_text(self.kept)}." if self.kept else ""
            sets = _values_text(self.by_preset) or "nothing"
            texts.insert(0, f"Preset {self.preset} sets {sets}.{left}")
        return " ".join(texts)


def fill_in(
    params: Mapping[str, Any],
    defaults: Mapping[str, Any],
    window_closes: Callable[[], datetime],
) -> Filled:
    """Parameters with the values of the preset that they name.

    A preset that is not known fills nothing: ``parse_request`` refuses it.

    :param defaults: what the form shows unless it is edited.
    :param window_closes: when the maintenance window closes that is open, or opens next.
    """
    preset_name = params.get("preset")
    try:
        preset = Preset.NONE if is_blank(preset_name) else Preset(str(preset_name))
    except ValueError:
        preset = Preset.NONE
    contents = PRESETS[preset]
    values = dict(contents.values)
    if contents.until_window_closes:
        values["window_end"] = window_closes().isoformat()
    set_here = {
        name: value
        for name, value in values.items()
        if is_blank(params.get(name)) or params[name] == defaults.get(name)
    }
    # A value that is the preset's own by chance was neither set by it nor kept against it.
    kept = {
        name: params[name]
        for name, value in values.items()
        if name not in set_here and params[name] != value
    }
    return Filled({**params, **set_here}, preset, set_here, kept)


def _values_text(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
