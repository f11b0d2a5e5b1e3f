"""What the form shows for each value of a parameter that has few."""

from __future__ import annotations

from rehome.domain.actions import ACTION_FACTS, Action, words
from rehome.domain.request.fields import types
from rehome.domain.request.presets import PRESETS
from rehome.domain.request.request import (
    FORMER_FINISH,
    Cordon,
    Effort,
    OnWindowEnd,
    Preset,
    SpreadOf,
)

ACTION = types.one_of(
    Action,
    {a: f"{words(a)} – {facts.about}" for a, facts in ACTION_FACTS.items()},
    none="Choose one",
)
PRESET = types.one_of(Preset, {name: contents.title for name, contents in PRESETS.items()})
ON_WINDOW_END = types.one_of(
    OnWindowEnd,
    {
        OnWindowEnd.FINISH: "Finish: start nothing that would not finish in time",
        OnWindowEnd.CANCEL: "Cancel: cancel what is in flight at the window's end",
    },
    formerly=[FORMER_FINISH],
)
CORDON = types.one_of(
    Cordon,
    {
        Cordon.NO: "No: Kafka may place new replicas there meanwhile",
        Cordon.KEEP: "Keep: cordon the brokers, for good",
        Cordon.UNDO: "Undo: cordon the brokers until the plan ends",
    },
)
SPREAD_OF = types.one_of(
    SpreadOf,
    {
        SpreadOf.REPLICAS: "Replicas and leaders",
        SpreadOf.LEADERS: "Leaders only: nothing is copied for it",
    },
)
EFFORT = types.one_of(
    Effort,
    {
        Effort.FAST: "Fast: within seconds, and mostly within some percent of the fewest bytes",
        Effort.THOROUGH: "Thorough: up to minutes, for one or two percent fewer bytes",
    },
)
