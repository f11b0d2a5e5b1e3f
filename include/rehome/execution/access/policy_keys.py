"""The keys of a policy, each defined once: how it is read, and what the handbook says of it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rehome.domain.actions import Action
from rehome.domain.broker_rates import NO_OWN_RATES
from rehome.domain.request import param_types
from rehome.domain.request.fields import types
from rehome.domain.request.validation import Read
from rehome.errors import InvalidRequestError
from rehome.execution.access.open_windows import Window, window_from_json
from rehome.execution.access.words.policy_words import NO_WINDOW

ADD_PARTITIONS = "add_partitions"
CANCEL_FOREIGN, ADOPT = "cancel_foreign", "adopt"
"""Of reassignments that other clients have started."""
ACTIONS = (*(action.value for action in Action), ADD_PARTITIONS, CANCEL_FOREIGN, ADOPT)
"""What a policy may allow. Stopping and cleaning up what is Rehome's is never refused, so it is not
among them.
"""


def _actions(value: Any) -> frozenset[str]:
    names = param_types.texts(value)
    unknown = sorted(set(names) - set(ACTIONS))
    if unknown:
        raise ValueError(f"names {', '.join(unknown)}; known: {', '.join(ACTIONS)}")
    return frozenset(names)


def _windows(value: Any) -> tuple[Window, ...]:
    if not isinstance(value, list):
        raise TypeError("is not a list")
    if not value:
        raise ValueError(NO_WINDOW)
    problems, windows = [], []
    for number, item in enumerate(value, 1):
        try:
            windows.append(window_from_json(item))
        except (TypeError, ValueError) as error:
            problems.append(f"window {number} {error}.")
    if problems:
        raise InvalidRequestError(problems)
    return tuple(windows)


class PolicyKeys(BaseModel):
    """What a policy may say. A key that is left out limits nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    actions: Annotated[
        frozenset[str] | None,
        Read("names of actions", _actions, {"type": "array", "items": {"enum": list(ACTIONS)}}),
        Field(description="Which actions may change the cluster. Left out: all."),
    ] = None
    approval: Annotated[
        types.YesOrNo,
        Field(description="Whether a person has to approve every plan."),
    ] = False
    own_approval: Annotated[
        types.YesOrNo,
        Field(description="Whether that may be one who has asked for it, or for its terms."),
    ] = False
    largest_throttle: Annotated[
        types.OptionalCount,
        Field(description="Bytes per second, per broker and direction. Left out: any."),
    ] = None
    largest_throttle_by_broker: Annotated[
        types.LargestRatesByBroker,
        Field(
            description="The same of single brokers, each by direction: no plan lets them send or "
            "receive more, whatever its own throttle is."
        ),
    ] = NO_OWN_RATES
    windows: Annotated[
        tuple[Window, ...],
        Read("list of windows", _windows, {"type": "array", "items": {"type": "object"}}),
        Field(
            description="When the cluster may be changed. Left out: always; it takes no empty list."
        ),
    ] = ()
    unthrottled: Annotated[
        types.YesOrNo,
        Field(
            description="Whether plans may run without a throttle. No, where nothing is said, not "
            "even a policy."
        ),
    ] = False
