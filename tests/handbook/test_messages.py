"""40 messages of the code, read with the handbook alone: the committed reading is of these."""

from __future__ import annotations

import re

import pytest

from handbook.messages import DRAWN, SEED, drawn, messages
from handbook.said import VALUE
from handbook.sentences import ROOT

SECOND = ROOT / "docs/decisions/100-forty-other-messages-read-by-an-operator.md"
READING = ROOT / "docs/decisions/072-forty-messages-read.md"


@pytest.mark.slow
def test_a_seed_draws_the_same_messages_again() -> None:
    found = drawn()
    assert found == drawn()
    assert len(found) == DRAWN
    assert found != drawn(seed=SEED + 1)
    assert set(found) <= set(messages())


@pytest.mark.slow
def test_messages_are_joined_as_people_see_them() -> None:
    found = messages()
    run_together = re.compile(r"[a-z}] (Trigger|Clear|This step|Nothing was) ")
    assert [text for text in found if run_together.search(text.replace(VALUE, "."))] == []
    by_its_class = "Run {…} was triggered by hand, but its run id is that of a run which {…} was "
    assert f"{by_its_class}to start. This step has changed nothing. " in "\n".join(found)
    assert any(
        text.startswith("{…}: the connection's principal lacks this right. Grant ")
        for text in found
    )
    assert any(
        text.startswith("brokers {…} did not answer the newest poll: {…}. Check ") for text in found
    )
    assert any(
        text.startswith("{…} (at least {…}, and the window has {…} left): takes longer to copy ")
        for text in found
    ), "what a dry run finds stands behind its figures"
    assert "Wait for it to end; it will not be superseded." in found, "one step of several"
    assert "… is not a number from 0 to 1." in found, "a part is marked as one"


def test_the_second_reading_has_the_new_words_of_each() -> None:
    rows = re.findall(r"^\| (\d+) \| .+ \| .+ \| .+ \|$", SECOND.read_text(), re.MULTILINE)
    assert [int(number) for number in rows] == list(range(1, DRAWN + 1))


def test_every_row_of_the_reading_says_what_it_means_and_what_to_do() -> None:
    row = re.compile(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \| (right|rewritten) \|$", re.MULTILINE)
    rows = row.findall(READING.read_text())
    assert [int(number) for number, *_ in rows] == list(range(1, DRAWN + 1))
    assert sum(judged == "right" for *_, judged in rows) >= 38
    assert all(all(part.strip() for part in row) for row in rows)
