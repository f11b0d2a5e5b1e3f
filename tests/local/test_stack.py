"""One demo, or one `make up`, at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.stack import alone, down


def test_a_state_directory_that_is_held_is_refused_with_what_to_do(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with alone(state):
        with pytest.raises(SystemExit, match="make down"), alone(state):
            pytest.fail("two held it")
        with pytest.raises(SystemExit, match="holds"):
            down(state)
    with alone(state):
        pass


def test_down_says_that_nothing_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert down(tmp_path) == 0
    assert "Nothing is running" in capsys.readouterr().out
