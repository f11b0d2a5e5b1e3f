"""Sentences in the code: the linter finds what it is for, and nothing in the code as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from handbook.sentences import (
    CLEARED,
    MOST_WORDS,
    ROOT,
    TYPED,
    faults,
    found_in,
    sentences_in_logic,
    sentences_of,
    template_faults,
    times_in_words,
    without_subject,
)


@pytest.mark.parametrize(
    ("source", "faulty"),
    [
        ('text = f"{count} moves wait"', True),
        ('text = "A run goes on with the plan."', True),  # a word of the glossary's list
        ('text = "A run resumes the plan."', False),
        ('text = "Its throttle is owed."', True),
        ('class State(StrEnum):\n    OWED = "owed"', False),  # as ledgers have it
        ('class State(StrEnum):\n    MENDED = "mended"', True),
        ('class Words(NamedTuple):\n    text = "It is owed."', True),
        ("text = f\"{count_text(count, 'move')} wait\"", False),
        ("text = f\"{count_text(count, 'topic has', 'topics have')} replicas left\"", False),
        ('text = f"{done} of {count} moves done"', False),
        ('text = f"plan {name} moves what is left"', False),
        ('TEXT = "{count} moves wait"', True),
        ('log.info("%d moves wait", count)', True),
        ('log.info("%d of %d moves wait", waiting, count)', False),
        ('text = f"{count} throttle settings are set"', True),
        ('TEXT = "{done} of {count} moves wait"', False),
        ('text = "ask somebody"', True),
        ('"""A docstring may say somebody."""', False),
        ('raise LeaseError("It is held by another run")', True),
        ('raise LeaseError(f"Its run {run} is dead")', True),
        ('raise LeaseError(f"Plan {plan}: it is held")', False),
        ('finding = Finding(WARNING, "limits", name, "its throttle is refused")', False),
        (f'text = "{"word " * MOST_WORDS}"', False),
        (f'text = "{"word " * (MOST_WORDS + 1)}"', True),
        (f'text = "{"word. " * (MOST_WORDS + 1)}"', False),
    ],
)
def test_what_is_a_fault(source: str, faulty: bool) -> None:
    assert bool(list(faults(source))) is faulty


@pytest.mark.parametrize(
    ("source", "faulty"),
    [
        ('"""A docstring has words."""\nwhy = Why.DRIVEN', False),
        ('params = {"plan_id": name, "throttle": "auto"}', False),
        ('run = f"{dag_id}/{run_id}"', False),
        ('raise StateRefusedError("Plan p1 is paused")', True),
        ('return f"{plan} is paused"', True),
        ('causes = ", ".join(found)', False),
    ],
)
def test_words_where_a_type_is_to_be(source: str, faulty: bool) -> None:
    assert bool(list(sentences_of(source))) is faulty


@pytest.mark.parametrize(
    ("source", "faulty"),
    [
        ('raise EndedError(TaskEnd(TaskReason.NO_PROOF, "p1"))', False),
        ('raise EndedError(f"Plan {plan} is {state}, and not verified")', True),
        ('why = "the run ended before its plan"', True),
        ('log.info("Plan %s is done: there is nothing to throttle.", plan)', False),
        ('raise AirflowSkipException(f"Plan {plan} is not done yet.")', False),
        (
            'self.log.info("%s", count_text(n, "setting is as it was", "all are as they were"))',
            False,
        ),
        ('"""A docstring has a few more words."""', False),
        ('raise self.error("The plan has not been verified by then")', True),
    ],
)
def test_sentences_where_a_type_is_to_be(source: str, faulty: bool) -> None:
    assert bool(list(sentences_in_logic(source))) is faulty


@pytest.mark.parametrize("room", [*CLEARED, TYPED])
def test_a_sentence_that_is_put_back_is_refused(room: str, tmp_path: Path) -> None:
    path = tmp_path / (room if room.endswith(".py") else f"{room}put_back.py")
    path.parent.mkdir(parents=True)
    path.write_text('raise RehomeError("The plan has not been verified by then")')
    (fault,) = found_in(tmp_path)
    assert "where a type is to be" in fault


@pytest.mark.parametrize(
    ("source", "faulty"),
    [
        ('text = f"since {at:%Y-%m-%d %H:%M} UTC"', True),
        ('text = f"since {minute_text(at)}"', False),
        ('text = f"{rate:.1f} of {day:%Y-%m-%d}"', False),
        ('at.strftime("%H:%M UTC")', True),
        ('"{:%H:%M}".format(at)', True),
    ],
)
def test_times_are_formatted_in_one_place(source: str, faulty: bool) -> None:
    assert bool(list(times_in_words(source))) is faulty


@pytest.mark.parametrize(
    ("source", "faulty"),
    [
        ('STEPS = {Why.ENDED: "It has ended already."}', True),
        ('return f"Its run {run} is dead."', True),
        ('return f"Run {run} is dead. It sends nothing."', False),
        ('"""It says so."""', False),
    ],
)
def test_words_that_stand_alone_begin_with_what_they_are_about(source: str, faulty: bool) -> None:
    assert bool(list(without_subject(source))) is faulty


@pytest.mark.parametrize(
    ("line", "faulty"),
    [
        ("<p>{{ view.moves }} moves wait</p>", True),
        ("<p>{{ view.moves|count_text('move') }} wait</p>", False),
        ("<p>Ask somebody.</p>", True),
    ],
)
def test_what_is_a_fault_in_a_template(line: str, faulty: bool) -> None:
    assert bool(list(template_faults(line))) is faulty


@pytest.mark.slow
def test_every_sentence_of_the_code_passes() -> None:
    assert list(found_in(ROOT)) == []
