"""Named scripts in which two things happen at once: each shows nothing any more."""

from __future__ import annotations

import pytest

from world import cases_of_coincidence
from world.outcome import run
from world.script import Script

pytestmark = pytest.mark.slow

SCRIPTS = {n: each for n, each in vars(cases_of_coincidence).items() if isinstance(each, Script)}


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_happens_at_once_shows_nothing(name: str) -> None:
    assert run(SCRIPTS[name], traced=False).violations == ()
