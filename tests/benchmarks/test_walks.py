"""Stays and returns on the way through the code."""

from __future__ import annotations

from benchmarks.code.walks import Walk


def entered(*calls: str) -> Walk:
    """:param calls: ``module.function``."""
    walk = Walk()
    for call in calls:
        module, function = call.split(".")
        walk.enter(compile("", module, "exec").replace(co_qualname=function))
    return walk


def test_calls_within_a_module_are_one_stay() -> None:
    walk = entered("a.f", "a.g", "b.f")
    assert (walk.stays, walk.returns) == (["a", "b"], 0)


def test_a_module_that_was_left_is_returned_to() -> None:
    walk = entered("a.f", "b.f", "a.g", "b.g")
    assert (walk.stays, walk.returns) == (["a", "b", "a", "b"], 2)


def test_what_was_called_before_is_no_new_stay() -> None:
    walk = entered("a.f", "b.f", "a.f", "b.f")
    assert (walk.stays, walk.returns) == (["a", "b"], 0)
