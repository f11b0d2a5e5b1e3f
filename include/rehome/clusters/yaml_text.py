"""YAML in which a key that is given twice is found, not silently lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml


def parse_yaml(text: str) -> tuple[Any, list[str]]:
    """Content, and a sentence for each key that is given twice in its mapping.

    :raises yaml.YAMLError: it is no YAML.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    twice = list(_twice(root, "")) if root is not None else []
    return yaml.safe_load(text), twice


def _twice(node: yaml.Node, place: str) -> Iterator[str]:
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _twice(item, f"{place}[{number}]")
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[str, int] = {}
    for key, value in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        where = f"{place}.{name}".removeprefix(".")
        if name in lines:
            yield f"{where}: stands in line {lines[name]} and in line {line}."
        lines.setdefault(name, line)
        yield from _twice(value, where)
