"""What `make test` leaves to others is there, and so are these."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.session.shown_elsewhere import SHOWN_BY

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("file", SHOWN_BY)
def test_the_tests_are_there_and_so_is_what_shows_the_same(file: str) -> None:
    written = set(re.findall(r"^def (test_\w+)", (ROOT / file).read_text(), re.M))
    assert {test.partition("[")[0] for test in SHOWN_BY[file]} <= written
    for path in SHOWN_BY[file].values():
        text = (ROOT / path).read_text()
        assert "\npytestmark = pytest.mark.long" not in text
        assert "def test_" in text
        assert path not in SHOWN_BY or len(SHOWN_BY[path]) < text.count("\ndef test_")
