"""Models that document each of their fields: as data, for forms and for documents.

A field's title, description, examples and bounds stand in its :class:`pydantic.Field`, its unit in
a :class:`Unit`, its place in a form in a :class:`Section`. What is shown is read from there.
"""

from __future__ import annotations

import enum
import json
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, ErrorDetails, core_schema

_T = TypeVar("_T")
_KINDS: Mapping[type, str] = {int: "whole number", float: "number", str: "text", bool: "yes or no"}


@dataclass(frozen=True, slots=True)
class Unit:
    """What a number counts, as a person writes it: ``s``, ``bytes per second``."""

    name: str


@dataclass(frozen=True, slots=True)
class ValueText:
    """What is accepted, in words, where the type does not say it."""

    text: str


@dataclass(frozen=True, slots=True)
class ProblemText:
    """What is said of a value that the type before this refuses."""

    text: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """As the type alone, with another message."""
        return core_schema.custom_error_schema(
            handler(source), custom_error_type="said", custom_error_message=self.text
        )


def reason_of(problem: ErrorDetails) -> str:
    """What a validator, or Pydantic, says of a value that it refuses."""
    return str(problem.get("ctx", {}).get("error") or problem["msg"])


@dataclass(frozen=True, slots=True)
class Section:
    """The heading under which a form shows the field."""

    title: str


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a default that follows from where Rehome runs."""

    default: str


@dataclass(frozen=True, slots=True)
class Described:
    """One field.

    :param kind: what is accepted, in words: ``number, more than 0``.
    :param unit: what a number counts; "" = nothing in particular.
    :param default: what holds when nothing is given; None = nothing, or a value is needed.
    :param shown_default: the default in words; "" = none.
    """

    name: str
    title: str
    description: str
    kind: str
    unit: str
    default: Any
    shown_default: str
    required: bool
    section: str
    examples: tuple[Any, ...]


def describe_fields(model: type[BaseModel]) -> tuple[Described, ...]:
    """Every field of a model, in its order."""
    return tuple(_field(name, info) for name, info in model.model_fields.items())


def mark(info: FieldInfo, kind: type[_T]) -> _T | None:
    """The mark of this kind that a field has; None = it has none."""
    return next((item for item in info.metadata if isinstance(item, kind)), None)


def _field(name: str, info: FieldInfo) -> Described:
    unit, section = mark(info, Unit), mark(info, Section)
    required = info.is_required()
    default = None if required else info.get_default(call_default_factory=True)
    return Described(
        name=name,
        title=info.title or name.replace("_", " ").capitalize(),
        description=info.description or "",
        kind=_kind(info),
        unit="" if unit is None else unit.name,
        default=default,
        shown_default=_shown_default(info, default),
        required=required,
        section="" if section is None else section.title,
        examples=tuple(info.examples or ()),
    )


def _shown_default(info: FieldInfo, default: Any) -> str:
    mark_of = mark(info, Shown)
    if mark_of is not None:
        return mark_of.default
    if default is None or default in ("", (), {}):
        return ""
    if isinstance(default, bool):
        return "yes" if default else "no"
    if isinstance(default, float) and default.is_integer():
        return f"{default:.0f}"
    if isinstance(default, Mapping):
        return json.dumps({str(key): value for key, value in default.items()}, ensure_ascii=False)
    return str(default)


def _kind(info: FieldInfo) -> str:
    mark_of = mark(info, ValueText)
    if mark_of is not None:
        return mark_of.text
    kinds = [_type_text(one) for one in _options(info.annotation)]
    return ", ".join([" or ".join(kinds), *_bounds(info.metadata)])


def _options(annotation: Any) -> Iterable[Any]:
    if get_origin(annotation) in (Union, types.UnionType):
        return [one for one in get_args(annotation) if one is not type(None)]
    return [annotation]


def _type_text(annotation: Any) -> str:
    if get_origin(annotation) is Literal:
        return " or ".join(f"{value}" for value in get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return ", ".join(str(item.value) for item in annotation)
    if annotation in _KINDS:
        return _KINDS[annotation]
    raise TypeError(f"{annotation} cannot be read from its type: give the field a ValueText")


def _bounds(metadata: Sequence[Any]) -> Iterable[str]:
    """The bounds in words; "at least" is left out where a "more than" implies it."""
    above: list[Any] = [item.gt for item in metadata if isinstance(item, annotated_types.Gt)]
    for item in metadata:
        if isinstance(item, annotated_types.Ge) and any(bound >= item.ge for bound in above):
            continue
        match item:
            case annotated_types.Gt(gt=bound):
                yield f"more than {bound}"
            case annotated_types.Ge(ge=bound):
                yield f"at least {bound}"
            case annotated_types.Lt(lt=bound):
                yield f"less than {bound}"
            case annotated_types.Le(le=bound):
                yield f"at most {bound}"
