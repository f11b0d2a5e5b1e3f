"""A plan as files for Kafka's own tools: batches that may be in flight, throttle commands."""

from __future__ import annotations

import json
import shlex
from typing import Any

from rehome.domain.actions import Action
from rehome.domain.configs import ConfigResource, DescribedConfigs
from rehome.domain.kafka import BrokerError, ConfigValue
from rehome.domain.plan.move import Move
from rehome.domain.reassignment_file import parse_reassignment
from rehome.domain.request.request import ReassignmentRequest
from rehome.execution.export import Exported, export, in_batches
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from tests.ledger.small_plans import make_plan, move

MOVES = tuple(move("t", n, (1, 2), (3, 2)) for n in range(5))
THROTTLED = ReassignmentRequest(Action.DRAIN, brokers=(1,))
FREE = ReassignmentRequest(Action.DRAIN, brokers=(1,), unthrottled=True, max_moves_per_broker=2)


def exported(
    request: ReassignmentRequest, *, most: int = 100, present: DescribedConfigs | None = None
) -> Exported:
    return export(make_plan("p", *MOVES), request, 5_000_000, most, present or {})


def sizes(moves: tuple[Move, ...], most: int, per_broker: int | None) -> list[int]:
    return [len(batch) for batch in in_batches(moves, most, per_broker)]


def test_a_batch_holds_what_may_be_in_flight_at_once() -> None:
    assert sizes(MOVES, 100, None) == [5]
    assert sizes(MOVES, 2, None) == [2, 2, 1]
    assert sizes(MOVES, 100, 2) == [2, 2, 1]
    apart = (move("t", 0, (1,), (2,)), move("t", 1, (3,), (4,)), move("t", 2, (1,), (4,)))
    assert sizes(apart, 100, 1) == [2, 1]
    leaders = tuple(move("t", n, (1, 2), (2, 1)) for n in range(3))
    assert sizes(leaders, 100, 1) == [3], "nothing is copied"
    several = (move("t", 0, (1,), (2, 3, 4)), *apart)
    assert sizes(several, 100, 1) == [1, 2, 1]


def test_the_batches_are_the_whole_plan_and_each_has_its_way_back() -> None:
    made = exported(FREE)
    assert made.batches == tuple(f"reassignment-000{n}.json" for n in (1, 2, 3))
    forth: dict[Any, Any] = {}
    back: dict[Any, Any] = {}
    for name in made.batches:
        forth |= parse_reassignment(made.texts[name])
        back |= parse_reassignment(made.texts[name.replace("reassignment", "rollback")])
    assert {p: a.replicas for p, a in forth.items()} == {m.partition: m.target for m in MOVES}
    assert {p: a.replicas for p, a in back.items()} == {m.partition: m.current for m in MOVES}
    assert json.loads(json.dumps(made.to_json()))["files"] == sorted(made.texts)


def commands(text: str) -> dict[str, list[str]]:
    """Entity → what follows its name, of each command."""
    lines = (shlex.split(line) for line in text.splitlines() if line.startswith("kafka-configs"))
    return {words[words.index("--entity-name") + 1]: words[-2:] for words in lines}


def own(value: str, source: str) -> ConfigValue:
    return ConfigValue(value, source)


def test_the_throttle_is_text_that_leaves_what_others_have_set_and_puts_it_back() -> None:
    topic, one, two = (
        ConfigResource.topic("t"),
        ConfigResource.broker(1),
        ConfigResource.broker(2),
    )
    present: dict[ConfigResource, Any] = {
        topic: {LEADER_REPLICAS: own("9:9", "DYNAMIC_TOPIC_CONFIG")},
        one: {LEADER_RATE: own("77", "DYNAMIC_BROKER_CONFIG")},
        two: {},
        ConfigResource.broker(3): BrokerError(31, "CLUSTER_AUTHORIZATION_FAILED", ""),
    }
    made = exported(THROTTLED, present=present)
    sets, clears = (made.texts[f"throttle-{what}.sh"] for what in ("set", "clear"))
    reported = commands(sets)
    rates = f"{LEADER_RATE}=5000000,{FOLLOWER_RATE}=5000000"
    assert reported["2"] == reported["3"] == ["--add-config", rates]
    assert reported["1"] == ["--add-config", f"{FOLLOWER_RATE}=5000000"]
    assert f"# broker 1: {LEADER_RATE} 77 is set by another client, and stays." in sets
    assert "# The value on broker 3 is not known (CLUSTER_AUTHORIZATION_FAILED)" in sets
    added = ",".join(f"{n}:3" for n in range(5))
    held = ",".join(f"{n}:{b}" for n in range(5) for b in (1, 2))
    lists = f"{LEADER_REPLICAS}=[9:9,{held}],{FOLLOWER_REPLICAS}=[{added}]"
    assert reported["t"] == ["--add-config", lists]
    back = commands(clears)
    assert back["1"] == ["--delete-config", FOLLOWER_RATE]
    assert back["2"] == ["--delete-config", f"{LEADER_RATE},{FOLLOWER_RATE}"]
    assert back["t"] == ["--delete-config", FOLLOWER_REPLICAS]
    assert f"--add-config '{LEADER_REPLICAS}=[9:9]' --delete-config" in clears


def test_a_list_that_covers_all_or_would_be_too_long_is_left_alone() -> None:
    topic = ConfigResource.topic("t")
    for there in ("*", ",".join(f"{n}:9" for n in range(8000))):
        lists = dict.fromkeys(
            (LEADER_REPLICAS, FOLLOWER_REPLICAS), own(there, "DYNAMIC_TOPIC_CONFIG")
        )
        sets = exported(THROTTLED, present={topic: lists}).texts["throttle-set.sh"]
        assert "t" not in commands(sets)
        assert sets.count("Use --throttle of kafka-reassign-partitions with each batch.") == 2


def test_without_a_throttle_there_are_no_commands_for_one_and_the_readme_says_so() -> None:
    made = exported(FREE)
    assert not [name for name in made.texts if name.startswith("throttle")]
    assert "WITHOUT A THROTTLE" in made.texts["README.txt"]
    assert "throttle-set.sh" in exported(THROTTLED).texts["README.txt"]


def test_preferred_leaders_are_elected_by_a_file_of_their_own() -> None:
    """Of an election the reassignment changes nothing: it would be carried out, and no more."""
    made = exported(FREE)
    named = json.loads(made.texts["elect-preferred.json"])["partitions"]
    assert named == [{"topic": "t", "partition": n} for n in range(5)]
    assert "--path-to-json-file elect-preferred.json" in made.texts["README.txt"]
