"""Types of settings: units and bounds, and how the environment's text is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from rehome.domain.request import limits
from rehome.domain.text import json_in
from rehome.errors import InvalidRequestError
from rehome.field_descriptions import Unit, ValueText
from rehome.places.uris import schemes_in


def _state_dir() -> Path:
    """Where local state lives unless it is set otherwise: next to Airflow's own state, outside
    the checkout.
    """
    home = os.environ.get("AIRFLOW_HOME") or os.path.expanduser("~/airflow")
    return Path(home) / "rehome"


def warehouse_of(value: Any) -> Any:
    """The URI of the warehouse; "" = in the folder of local state."""
    return (_state_dir() / "warehouse").as_uri() if value == "" else value


def schemes_of(value: str) -> str:
    """Schemes of URIs, as they are written."""
    schemes_in(value)
    return value


def ledger_url_of(value: Any) -> Any:
    """The URL of the ledger; "" = an SQLite file in the folder of local state."""
    return f"sqlite:///{_state_dir() / 'ledger.db'}" if value == "" else value


def from_json(value: Any) -> Any:
    """The value of JSON text, which the environment has; Airflow's Variable holds values."""
    return json_in(value) if isinstance(value, str) else value


def caps_of(value: Any) -> Any:
    """Caps of brokers, checked as a run's parameter is."""
    with _as_value_error():
        return limits.read_caps(value)


def broker_sets_of(value: Any) -> Any:
    """Broker sets, checked as a run's parameter is."""
    with _as_value_error():
        return limits.read_broker_sets(value)


@contextmanager
def _as_value_error() -> Iterator[None]:
    try:
        yield
    except InvalidRequestError as error:
        raise ValueError(" ".join(error.problems)) from None


LONGEST_DAYS = 700_000
"""What lies so far before or after now has a date still."""
LONGEST_S = LONGEST_DAYS * 86_400
Seconds = Annotated[float, Unit("s"), Field(gt=0, le=LONGEST_S, allow_inf_nan=False)]
SecondsOrNone = Annotated[float, Unit("s"), Field(ge=0, le=LONGEST_S, allow_inf_nan=False)]
Days = Annotated[int, Unit("days"), Field(gt=0, le=LONGEST_DAYS)]
Rate = Annotated[int, Unit("bytes per second"), Field(gt=0)]
Count = Annotated[int, Field(gt=0)]
Size = Annotated[int, Unit("bytes"), Field(ge=0)]
Mode = Annotated[
    str,
    ValueText('the octal mode of a folder as text, which leaves its owner everything: "0750"'),
    Field(pattern=r"^0[0-7]?7[0-7]{2}$"),
]
