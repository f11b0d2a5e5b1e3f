"""Text of others is harmless in a terminal."""

from __future__ import annotations

import pytest

from rehome.cli.output import clean, console, local_moment, say_json_line


def test_text_of_others_gives_a_terminal_no_commands() -> None:
    assert clean("a\x1b[2Jb\r\nc\u202ed") == "a�[2Jb�\nc�d"
    assert clean("täglich – 5 %") == "täglich – 5 %"


def test_lines_do_not_break_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("x" * 95)
    say_json_line({"name": "a\x1b"})
    assert capsys.readouterr().out.splitlines() == ["x" * 95, '{"name": "a\\u001b"}']


def test_a_time_that_is_not_known_is_a_dash() -> None:
    assert local_moment(None) == "–"
    assert local_moment("2030-01-31T04:00:00+00:00").startswith("2030-01-3")
