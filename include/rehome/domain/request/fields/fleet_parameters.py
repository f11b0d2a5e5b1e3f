"""What a run of `plan_fleet` is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rehome.domain.request import param_types
from rehome.domain.request.fields.shared import WHAT
from rehome.domain.request.validation import Read, read_params
from rehome.errors import InvalidRequestError

REMOVED_PARAMS = frozenset({"hours_ahead"})
"""Of earlier versions: this one accepts and ignores them."""


class FleetParams(BaseModel):
    """What a run of `plan_fleet` takes, and how forms show it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    clusters: Annotated[
        tuple[str, ...],
        Read(
            "names of clusters",
            param_types.texts,
            {"type": ["null", "array"], "items": {"type": "string", "minLength": 1}},
        ),
        WHAT,
        Field(
            title="Clusters",
            description="Names in the clusters file: they are planned for their next window, "
            "however far ahead. Nothing given: all whose window opens within 12 hours.",
        ),
    ] = ()


def parse_fleet(params: Mapping[str, Any]) -> FleetParams:
    """The raw parameters of a run.

    :raises InvalidRequestError: lists every problem.
    """
    read = read_params(FleetParams, {n: v for n, v in params.items() if n not in REMOVED_PARAMS})
    if read.problems:
        raise InvalidRequestError(read.problems)
    return read.values
