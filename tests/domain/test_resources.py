"""What is declared of a resource, and the rows that it has in arrays."""

from __future__ import annotations

from rehome.domain.request.parameters import ReassignmentParams
from rehome.domain.resources import (
    LED,
    OPTIONAL,
    PLACED,
    RATES,
    RESOURCE_FACTS,
    Resource,
    led_resources,
    placed_resources,
)


def test_every_resource_is_declared_and_comes_with_replicas_or_leaders() -> None:
    assert set(RESOURCE_FACTS) == set(Resource) == {*PLACED, *LED}
    assert Resource.LEADERS not in RATES
    assert Resource.POTENTIAL_BYTES_OUT in RATES


def test_a_resource_has_the_same_row_wherever_it_has_one() -> None:
    """So optional ones come last, and a row is there as soon as a later one is."""
    for every, rows in ((PLACED, placed_resources), (LED, led_resources)):
        optional = [resource in OPTIONAL for resource in every]
        assert optional == sorted(optional)
        for last in range(optional.index(True), len(every)):
            assert rows({every[last].value: 0.1}) == every[: last + 1]
        assert rows({}) == every[: optional.index(True)]
        assert rows({every[-1].value: None}) == rows({})


def test_the_form_names_every_optional_resource_with_what_it_is() -> None:
    text = ReassignmentParams.model_fields["tolerances"].description or ""
    for resource in OPTIONAL:
        assert f"{resource.value} is {RESOURCE_FACTS[resource].about}" in text
