from __future__ import annotations

import pytest

from rehome.domain.kafka_limits import refuse_topic_name


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "t" * 249, "__consumer_offsets"])
def test_a_name_that_kafka_takes_is_taken(name: str) -> None:
    refuse_topic_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "a*", "é", "a\n", "t" * 250])
def test_a_name_that_kafka_does_not_take_is_refused_and_shown_in_short(name: str) -> None:
    with pytest.raises(ValueError, match="Topic") as refused:
        refuse_topic_name(name)
    assert len(str(refused.value)) < 200
    assert "\n" not in str(refused.value)


def test_a_pattern_may_have_what_patterns_have() -> None:
    refuse_topic_name("logs-[a-c]?-*", pattern=True)
