"""A map from an enum has a value for every member, wherever a member is looked up in it.

A member without its words once ended the trigger of a plan that ran. Maps that are only asked with
``get`` or ``in`` may leave members out. Those that are asked for a member, and leave some out
because the code has dealt with them before, are listed here with what they leave out: a new member
of the enum is then missed by this test.
"""

from __future__ import annotations

import ast
import enum
import importlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rehome.domain.kafka import ReplicaId
from rehome.domain.run.progress import ReplicaState, ReplicaStatus
from rehome.execution.progress.progress import status_table, status_text

ROOT = Path(__file__).parents[2]
PACKAGES = {"include/rehome": "rehome", "plugins/rehome": "rehome", "spark_jobs": "spark_jobs"}

DEALT_WITH_BEFORE = {
    "rehome.domain.plan.infeasible_text._SENTENCES": {  # they have figures: _WITH_FIGURES
        *("RACKS_ALLOW_NO_MORE", "RACKS_FORCE_MORE"),
        *("LARGE_PARTITION", "OUTSIDE_SET", "MOVED_SINCE", "WAY_BACK_NOT_LIVE", "IN_SYNC_KEPT"),
        *("REPLACEMENT_HOLDS_ONE", "REPLACEMENT_RACKS", "REPLACEMENT_FULL"),
        *("REPLACEMENT_LIMITED", "OUTSIDE_DESTINATIONS", "OTHER"),
    },
    "rehome.execution.assessed._ENDS": {
        *("UNTOUCHED", "IN_FLIGHT", "BETWEEN", "MISPLACED", "UNDONE", "UNREADABLE")
    },
    "rehome.execution.control.words.approval_words._EFFECT_REASONS": {  # in reason_of
        *("EXPIRED", "HASH", "RATE", "LEAST_RATE", "WINDOW", "ADDITIONAL", "UNTHROTTLED"),
        *("SETTINGS", "EVIDENCE", "RATES_BY_BROKER", "NEW_REPLICAS"),
    },
    "rehome.execution.control.words.refusal_words._STATE_STEPS": {"OTHER_ACTIVE", "CARRIED_OUT"},
    "rehome.execution.observation.words.drift_words._DRIFTED": {"REPLICAS"},  # it has figures
    "rehome.page.controls._EFFECTS": {"NEXT_WINDOW"},
    "rehome.planning.planner.PLANNERS": {
        *("REASSIGN", "MOVE_LOG_DIRS", "EVACUATE_LOG_DIRS", "ROLLBACK")
    },
    "rehome.reporting.plan_text._OUTCOMES": {"PENDING", "ADMITTED", "DONE", "CANCELLED"},
    "rehome.domain.run.paused.paused_text._REASONS": {"PAUSED_BY_PERSON"},
    "rehome.domain.run.paused.paused_text._REMEDIES": {"PAUSED_BY_PERSON"},
}
ASKED_WITH_KNOWN_MEMBERS = {
    "rehome.execution.access.words.policy_words._STEPS": "refusals: asked after `in`",
    "rehome.execution.control.words.approval_words._SAID": "terms as they are: asked in a case",
    "rehome.execution.control.words.approval_words._RUN": "how it would run: asked in a case",
    "rehome.execution.assessed._NOT_IN_FLIGHT": "what has become of a lost move: asked after `in`",
    "rehome.ledger.stores.events.DECIDED": "kinds of decisions: asked after `in`",
    "rehome.domain.plan.causes.cause_text._INSTEAD": "obstacles of a replacement: asked after `in`",
    "rehome.domain.plan.causes.cause_text._OF_COPY": "causes of a copy: asked after `in`",
    "rehome.reporting.plan_text._KINDS": "kinds of exceptions: asked after `in`",
}


def modules() -> Iterator[tuple[ModuleType, Path]]:
    for folder, package in PACKAGES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if "migrations" not in parts:
                name = ".".join((package, *parts)).removesuffix(".__init__")
                yield importlib.import_module(name), path


def enum_of(value: object) -> type[enum.Enum] | None:
    """The enum whose members are the keys of a map; None = it is no such map."""
    if not isinstance(value, Mapping) or not value:
        return None
    kinds = {type(key) for key in value}
    kind = kinds.pop()
    return kind if not kinds and issubclass(kind, enum.Enum) else None


def looked_up() -> dict[str, set[str]]:
    """Maps that are asked for a member, by their name: the members that they leave out."""
    names: dict[int, str] = {}
    found: dict[str, set[str]] = {}
    every = list(modules())
    for module, _ in every:
        for name, value in vars(module).items():
            defined_here = f"{name}: " in _source(module) or f"\n{name} = " in _source(module)
            if enum_of(value) is not None and defined_here:
                names[id(value)] = f"{module.__name__}.{name}"
    for module, path in every:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                value = _global(module, node.value)
                kind = enum_of(value)
                if kind is not None and id(value) in names:
                    found[names[id(value)]] = {m.name for m in kind if m not in value}
    return found


def _source(module: ModuleType) -> str:
    assert module.__file__ is not None
    return Path(module.__file__).read_text()


def _global(module: ModuleType, node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return vars(module).get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return getattr(vars(module).get(node.value.id), node.attr, None)
    return None


@pytest.mark.slow
def test_every_map_that_is_asked_for_a_member_has_all_of_them() -> None:
    partial = {name: missing for name, missing in looked_up().items() if missing}
    for name in ASKED_WITH_KNOWN_MEMBERS:
        assert partial.pop(name), f"{name} is listed here, and leaves nothing out"
    assert partial == DEALT_WITH_BEFORE


@pytest.mark.slow
def test_maps_are_found() -> None:
    found = looked_up()
    assert len(found) > 30
    assert "rehome.execution.progress.progress._TEXTS" in found


@pytest.mark.parametrize("state", ReplicaState)
def test_every_state_of_a_replica_has_its_words(state: ReplicaState) -> None:
    status = ReplicaStatus(ReplicaId("t", 0, 1), state, datetime(2030, 1, 1, tzinfo=UTC))
    assert status_text(status)
    assert "of 60 replicas shown (of all: 60 " in status_table([status] * 60)
