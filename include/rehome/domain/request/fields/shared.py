"""Parameters that several DAGs have, and the headings under which forms show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from rehome.domain.actions import Action
from rehome.domain.request import limits
from rehome.domain.request.fields import types
from rehome.field_descriptions import Section, Unit


@dataclass(frozen=True, slots=True)
class TakenBy:
    """The actions that a parameter means something to; by the others it is refused."""

    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class OfOneRun:
    """A parameter that says what one run is for: no cluster has a default of its own for it."""


OF_ONE_RUN = OfOneRun()

WHAT = Section("What to do")
FIRST = Section("Before anything changes")
LIMITS = Section("Balance and limits")
BYTES = Unit("bytes")

_OVERRIDES = " Nothing given: those of the setting"

Dryness = Annotated[
    types.YesOrNo,
    FIRST,
    OF_ONE_RUN,
    Field(
        title="Dry run",
        description="Stop after the dry run. Its report is the result, and nothing is changed. "
        "The button Run… on the plan's page carries that very plan out later.",
    ),
]
AskApproval = Annotated[
    types.YesOrNo,
    FIRST,
    Field(
        title="Ask for approval",
        description="Wait until a person has read the plan and approved it. A policy of the "
        "connection may ask for it anyway.",
    ),
]
Cluster = Annotated[
    types.ConnectionId,
    WHAT,
    OF_ONE_RUN,
    Field(
        title="Cluster",
        description="Airflow connection that leads to the cluster, of type rehome_kafka or kafka.",
        examples=["kafka_default"],
    ),
]
Caps = Annotated[
    types.OptionalCaps,
    LIMITS,
    Field(
        title="Caps",
        description=f"{limits.CAPS_ABOUT}{_OVERRIDES}; {{}} lifts them.",
        examples=[limits.CAPS_EXAMPLE],
    ),
]
BrokerSets = Annotated[
    types.OptionalBrokerSets,
    LIMITS,
    Field(
        title="Broker sets",
        description=f"{limits.SETS_ABOUT}{_OVERRIDES}; [] lifts them.",
        examples=[list(limits.SETS_EXAMPLE)],
    ),
]
