"""Parameters that several DAGs have, and the headings under which forms show them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from rehome.domain.request import limits
from rehome.domain.request.fields import types
from rehome.field_descriptions import Section, Unit

WHAT = Section("What to do")
FIRST = Section("Before anything changes")
LIMITS = Section("Balance and limits")
BYTES = Unit("bytes")

_OVERRIDES = " Nothing given: those of the setting"

Dryness = Annotated[
    types.YesOrNo,
    FIRST,
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
