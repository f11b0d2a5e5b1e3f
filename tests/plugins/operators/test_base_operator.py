"""Behaviour that all operators of Rehome share."""

from __future__ import annotations

from typing import Any

import pytest


def test_an_operator_without_a_step_of_its_own_cannot_be_made() -> None:
    from rehome.operators.base import ClusterOperator

    class Forgotten(ClusterOperator):
        pass

    class Written(ClusterOperator):
        def step(self, context: Any) -> str:
            return "done"

    with pytest.raises(TypeError, match="step"):
        Forgotten(task_id="forgotten")
    assert Written(task_id="written").execute({}) == "done"
