"""A script's text is Python that makes it again."""

from __future__ import annotations

import pytest

from world import script as module
from world.luck import script_of
from world.others import config_change
from world.script import Do, Script, What


@pytest.mark.parametrize("seed", range(1, 30))
def test_a_scripts_text_is_the_script(seed: int) -> None:
    script = script_of(seed)
    names = {name: getattr(module, name) for name in dir(module)}
    assert eval(script.text(), names) == script


def test_the_same_seed_draws_the_same_script() -> None:
    assert script_of(7) == script_of(7)
    assert len({script_of(seed).text() for seed in range(50)}) == 50


def test_what_has_no_change_of_a_configuration_is_refused() -> None:
    with pytest.raises(ValueError, match="changes no configuration"):
        config_change(Do(0, "admin", What.DELETE_TOPIC, ("t",)))


def test_the_length_of_a_script_counts_what_could_be_left_out() -> None:
    script = Script(1, 3, (), (), does=(Do(0, "A", What.PAUSE),))
    assert len(script) == 1
