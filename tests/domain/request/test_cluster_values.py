"""Caps, broker sets and targets of a cluster: what counts for a plan, and what has changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rehome.domain.request.cluster_values import ClusterValues, changes
from rehome.domain.request.limits import read_broker_sets, read_caps
from rehome.errors import InvalidRequestError

CAPS = {"default": {"replicas": 4000}, "brokers": {"5": {"replicas": None, "leaders": 10}}}
FAST = {"name": "fast", "topics": ["orders"], "brokers": [1, 2]}
SLOW = {"name": "slow", "topics": ["*"], "brokers": [3]}
TARGETS = {"tolerance": 0.05, "exclude_topics": ["audit-*"]}


def values(
    caps: Any = CAPS,
    sets: Any = (FAST, SLOW),
    targets: Any = TARGETS,
    action: str = "rebalance",
    of_run: tuple[str, ...] = (),
) -> ClusterValues:
    return ClusterValues.of(read_caps(caps), read_broker_sets(list(sets)), targets, action, of_run)


def reported(was: ClusterValues, now: ClusterValues) -> list[str]:
    return [str(change) for change in changes(was.counting(), now.counting())]


@pytest.mark.parametrize(
    ("now", "change"),
    [
        ({"caps": CAPS | {"default": {"replicas": 10}}},
         "caps.default.replicas was 4000, and is 10"),
        ({"caps": CAPS | {"default": {}}}, "caps.default.replicas was 4000, and is not set"),
        ({"caps": CAPS | {"brokers": {"5": {"leaders": 10}}}},
         "caps.brokers.5.replicas was null, and is not set"),
        ({"caps": {**CAPS, "default": {"replicas": 4000, "leaders": 7}}},
         "caps.default.leaders was not set, and is 7"),
        ({"sets": (FAST | {"brokers": [1, 2, 3]}, SLOW)},
         'broker_sets.fast was {"topics": ["orders"], "brokers": [1, 2], "exclusive": false}, and '
         'is {"topics": ["orders"], "brokers": [1, 2, 3], "exclusive": false}'),
        ({"sets": (SLOW,)},
         'broker_sets.fast was {"topics": ["orders"], "brokers": [1, 2], "exclusive": false}, and '
         "is not set"),
        ({"sets": (SLOW, FAST)},
         'order of broker sets was ["fast", "slow"], and is ["slow", "fast"]'),
        ({"targets": TARGETS | {"tolerance": 0.1}}, "targets.tolerance was 0.05, and is 0.1"),
        ({"targets": {"tolerance": 0.05}},
         'targets.exclude_topics was ["audit-*"], and is not set'),
    ],
)  # fmt: skip
def test_each_change_is_named_with_the_old_and_the_new_value(
    now: dict[str, Any], change: str
) -> None:
    assert reported(values(), values(**now)) == [change]
    assert reported(values(**now), values(**now)) == []


def test_what_the_run_states_itself_does_not_count() -> None:
    own = ("caps", "broker_sets", "tolerance")
    was = values(of_run=own)
    now = values({}, (), TARGETS | {"tolerance": 0.1}, of_run=own)
    assert reported(was, now) == []
    assert not was.counting_caps
    assert was.counting_sets == ()


def test_targets_that_the_action_has_no_use_for_do_not_count() -> None:
    was, now = values(action="drain"), values(targets={}, action="drain")
    assert reported(was, now) == ["targets.tolerance was 0.05, and is not set"]


def test_targets_that_are_caps_or_sets_count_instead_of_the_clusters() -> None:
    found = values(targets={"caps": {"default": {"replicas": 3}}, "broker_sets": [SLOW]})
    assert found.caps == read_caps({"default": {"replicas": 3}})
    assert [item.name for item in found.broker_sets] == ["slow"]
    assert dict(found.targets) == {}


def test_what_was_recorded_is_read_back() -> None:
    before = values(targets={"exclude_topics": ("a", "b")}, of_run=("tolerance",))
    kept = ClusterValues.from_json(json.loads(json.dumps(before.to_json())))
    assert kept.of_run == {"tolerance"}
    assert kept.counting() == before.counting()
    assert kept.caps == before.caps


def test_a_former_word_in_what_was_recorded_is_no_change() -> None:
    before = values(targets={"on_window_end": "finish"})
    kept = before.to_json()
    kept["targets"]["on_window_end"] = "drain"
    assert reported(ClusterValues.from_json(kept), before) == []


def test_a_long_value_is_shown_in_part() -> None:
    many = FAST | {"topics": [f"topic-{n}" for n in range(500)]}
    (change,) = changes(values().counting(), values(sets=(many, SLOW)).counting())
    assert change.now.endswith("…")
    assert len(change.now) < 300


@pytest.mark.parametrize(
    ("caps", "problem"),
    [
        ('{"brokers": {"5": {"replicas": 5}, "5": {"replicas": 6}}}', "caps names '5' more than"),
        ({"brokers": {"5": {"replicas": 5}, "05": {"leaders": 6}}}, "names '5' more than once"),
    ],
)
def test_a_broker_has_caps_once(caps: Any, problem: str) -> None:
    with pytest.raises(InvalidRequestError, match=problem):
        read_caps(caps)


def test_a_broker_set_has_each_of_its_keys_once() -> None:
    text = '[{"name": "fast", "topics": ["a"], "brokers": [1], "brokers": [2]}]'
    with pytest.raises(InvalidRequestError, match="broker_sets names 'brokers' more than once"):
        read_broker_sets(text)
