"""How a model of parameters reads what it is given: every problem at once, each named by its
parameter.

A field's :class:`Read` holds both what reads its value and the JSON schema by which a form checks
it, so that the two stay together.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema

from rehome.errors import InvalidRequestError, PickledAsRaised
from rehome.field_descriptions import ValueText

_M = TypeVar("_M", bound=BaseModel)
_T = TypeVar("_T")
UNKNOWN_NAMED = 10
"""Unknown parameters that are named; a request of a megabyte has room for a hundred thousand."""


class ProblemsError(PickledAsRaised, ValueError):
    """More than one sentence about one value, each complete in itself."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(" ".join(problems))


def every_problem(parse: Callable[[Any], _T]) -> Callable[[Any], _T]:
    """Reading as Pydantic's validators do: by one error, with every problem."""

    def validate(value: Any) -> _T:
        try:
            return parse(value)
        except InvalidRequestError as error:
            raise ProblemsError(error.problems) from None
        except TypeError as error:
            raise ValueError(str(error)) from None

    return validate


@dataclass(frozen=True, slots=True)
class Read(ValueText):
    """How one parameter is read.

    :param parse: value → what it means; raises what continues "name=value …".
    :param schema: JSON schema of what a form, or Airflow's API, takes.
    """

    parse: Callable[[Any], Any]
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Read by ``parse`` alone."""
        return core_schema.no_info_plain_validator_function(every_problem(self.parse))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """What a form accepts."""
        return dict(self.schema)


@dataclass(frozen=True, slots=True)
class Given(Generic[_M]):
    """Parameters as they were read.

    :param values: those that could be read; the others are at their default.
    :param failed: names of those that could not.
    :param problems: a sentence for each problem, unknown names included.
    """

    values: _M
    failed: frozenset[str]
    problems: tuple[str, ...]


def read_params(model: type[_M], params: Mapping[str, Any]) -> Given[_M]:
    """Read parameters; None and empty text mean "not given".

    :param model: its fields all have defaults, and it forbids unknown names.
    """
    non_blank = {name: value for name, value in params.items() if not is_blank(value)}
    unknown = [name for name in params if name not in model.model_fields]
    values = {name: value for name, value in non_blank.items() if name in model.model_fields}
    every = ", ".join(sorted(model.model_fields))
    problems = [
        f"Unknown parameter {value_text(name)}; known: {every}." for name in unknown[:UNKNOWN_NAMED]
    ]
    if len(unknown) > UNKNOWN_NAMED:
        problems.append(f"{len(unknown) - UNKNOWN_NAMED} more parameters are unknown.")
    read = read_values(model, values)
    return replace(read, problems=(*problems, *read.problems))


def read_values(model: type[_M], values: Mapping[str, Any]) -> Given[_M]:
    """Read values of a model's fields, whatever they are: None is a value, too.

    :param model: its fields all have defaults.
    """
    try:
        return Given(model.model_validate(values), frozenset(), ())
    except ValidationError as error:
        failed = frozenset(str(problem["loc"][0]) for problem in error.errors())
        problems = tuple(_sentences(error))
    left = {name: value for name, value in values.items() if name not in failed}
    return Given(model.model_validate(left), failed, problems)


def is_blank(value: Any) -> bool:
    """Whether a form was left empty there."""
    return value is None or (isinstance(value, str) and not value.strip())


def _sentences(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        cause = problem.get("ctx", {}).get("error")
        if isinstance(cause, ProblemsError):
            yield from cause.problems
        else:
            yield f"{problem['loc'][0]}={value_text(problem['input'])} {cause or problem['msg']}."


def value_text(value: Any) -> str:
    """A value as messages quote it."""
    text = reprlib.repr(value) if isinstance(value, _LARGE) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


_LARGE = (list, dict)
