"""Names of topics."""

from __future__ import annotations

import pytest

from world.kafka.errors import Refusal
from world.kafka.topic_names import check_topic_name, colliding


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a/b", "ä"])
def test_a_name_that_no_topic_may_have_is_refused(name: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_topic_name(name)
    assert refused.value.error.code == 17


def test_names_collide_where_only_dot_and_underscore_differ() -> None:
    check_topic_name("a" * 249)
    assert colliding("a.b", ["c", "a_b"]) == "a_b"
    assert colliding("ab", ["a_b"]) is None
