"""Sentences in the code: the linter finds what it is for, and nothing in the code as it is."""

from __future__ import annotations

import pytest

from handbook.sentences import MOST_WORDS, ROOT, faults, found_in


@pytest.mark.parametrize(
    ("source", "faulty"),
    [
        ('text = f"{count} moves wait"', True),
        ("text = f\"{count_text(count, 'move')} wait\"", False),
        ("text = f\"{count_text(count, 'topic has', 'topics have')} replicas left\"", False),
        ('text = f"{done} of {count} moves done"', False),
        ('text = f"plan {name} moves what is left"', False),
        ('text = "ask somebody"', True),
        ('"""A docstring may say somebody."""', False),
        (f'text = "{"word " * MOST_WORDS}"', False),
        (f'text = "{"word " * (MOST_WORDS + 1)}"', True),
        (f'text = "{"word. " * (MOST_WORDS + 1)}"', False),
    ],
)
def test_what_is_a_fault(source: str, faulty: bool) -> None:
    assert bool(list(faults(source))) is faulty


def test_every_sentence_of_the_code_passes() -> None:
    assert list(found_in(ROOT)) == []
