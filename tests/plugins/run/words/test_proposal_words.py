"""What a person is asked about reassignments of other clients."""

from __future__ import annotations

from dataclasses import replace

from rehome.domain.kafka import OngoingReassignment, TopicPartition
from rehome.domain.run.foreign.foreign_request import ForeignAction
from rehome.execution.foreign.named import NamedReassignment, NamedReassignments
from rehome.run.words.proposal_words import NAMED_IN_TEXT, approved_by_text, foreign_question

ENTRY = OngoingReassignment((3, 1), (3,), (2,))
ONE = NamedReassignment(TopicPartition("t", 0), "id", ENTRY)
ASKED = NamedReassignments("c1", ForeignAction.CANCEL, (ONE,), clean_throttles=True)


def test_a_question_names_each_and_says_what_is_done_with_them() -> None:
    text = foreign_question(ASKED, "s3://b/f.json", "")
    assert text.startswith("**Cancel** 1 reassignment of other clients on cluster c1.")
    assert "that nothing in flight uses afterwards are taken away." in text
    assert f"- t-0: adds {list(ENTRY.adding)}, removes {list(ENTRY.removing)}, leads to" in text
    assert f"- all of them: s3://b/f.json\n- digest `{ASKED.digest}`" in text
    adopt = replace(ASKED, action=ForeignAction.ADOPT, rate_bytes_per_s=5_000_000)
    text = foreign_question(adopt, "f", "Asked again.")
    assert text.startswith("Asked again.\n\n**Adopt** 1 reassignment")
    assert "at 5 MB/s for each broker" in text
    many = replace(ASKED, reassignments=(ONE,) * (NAMED_IN_TEXT + 3))
    assert "- and 3 more, in the file" in foreign_question(many, "f", "")


def test_the_event_counts_them_and_names_who_has_approved() -> None:
    assert approved_by_text(3, "ann") == "3 named, approved by ann"
