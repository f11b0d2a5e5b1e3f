"""40 messages of the code, read with the handbook alone: the committed reading is of these."""

from __future__ import annotations

import re

from handbook.messages import DRAWN, SEED, drawn, messages
from handbook.sentences import ROOT

READING = ROOT / "docs/decisions/072-forty-messages-read.md"


def test_a_seed_draws_the_same_messages_again() -> None:
    found = drawn()
    assert found == drawn()
    assert len(found) == DRAWN
    assert found != drawn(seed=SEED + 1)
    assert set(found) <= set(messages())


def test_every_row_of_the_reading_says_what_it_means_and_what_to_do() -> None:
    row = re.compile(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \| (right|rewritten) \|$", re.MULTILINE)
    rows = row.findall(READING.read_text())
    assert [int(number) for number, *_ in rows] == list(range(1, DRAWN + 1))
    assert sum(judged == "right" for *_, judged in rows) >= 38
    assert all(all(part.strip() for part in row) for row in rows)
