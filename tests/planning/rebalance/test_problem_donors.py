"""An expansion takes from the fullest brokers, and from none more than down to its share.

What brokers hold is added up here from the replicas, without the planner's code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

from rehome.domain.kafka import TopicPartition
from rehome.planning.rebalance.problem import level
from tests.examples import examples
from tests.planning.clusters import Cluster
from tests.planning.planned import plan

SPREADS_TOPICS = True  # see conftest

TOLERANCE = 0.02
ANY_SPREAD = {"topic_spread": None}


def dealt(
    brokers: int,
    new: int,
    *,
    topics: int = 10,
    partitions: int = 12,
    replicas: int = 3,
    sigma: float = 0.0,
    start: int = 0,
) -> Cluster:
    """Topics dealt over all brokers but the new ones, with sizes of that spread."""
    rng = np.random.default_rng(start)
    names = [TopicPartition(f"t{t}", n) for t in range(topics) for n in range(partitions)]
    rows = {
        name: tuple((start + at + step) % brokers for step in range(replicas))
        for at, name in enumerate(names)
    }
    sizes = {name: int(1e9 * rng.lognormal(0, sigma)) for name in names}
    return Cluster(racks=dict.fromkeys(range(brokers + new), ""), replicas=rows, sizes=sizes)


def loads(of: Cluster) -> np.ndarray:
    """Bytes of each broker, in shares."""
    held: Counter[int] = Counter()
    for partition, row in of.replicas.items():
        held.update(dict.fromkeys(row, of.sizes[partition] or 0))
    total = sum(held.values())
    return np.array([held[broker] * len(of.racks) / total for broker in of.racks])


def expanded(
    of: Cluster, new: int, **params: Any
) -> tuple[np.ndarray, np.ndarray, set[int | None]]:
    """Loads before and after, and the brokers that the summary names."""
    named = list(of.racks)[-new:]
    made = plan(of, action="expand", brokers=named, **params)
    return loads(of), loads(of.after(made)), {n.subject.broker for n in made.summary.infeasible}


@pytest.mark.slow
@pytest.mark.parametrize("tolerances", [{}, ANY_SPREAD])
@pytest.mark.parametrize(
    ("of", "new"),
    [
        (dealt(3, 1), 1),
        (dealt(3, 1, sigma=1.0), 1),
        (dealt(9, 3, partitions=36), 3),
        (dealt(5, 1, replicas=2, topics=20, sigma=1.0), 1),
    ],
)
def test_all_brokers_end_near_their_shares(
    of: Cluster, new: int, tolerances: dict[str, None]
) -> None:
    _, after, notes = expanded(of, new, tolerances=tolerances)
    assert np.abs(after - 1).max() <= 0.03
    assert not notes


def test_the_fullest_gives_first() -> None:
    """Broker 2 holds a third of what the others do: it is not among the donors."""
    rows = [(n % 2,) for n in range(60)] + [(2,)] * 10
    names = [TopicPartition("t", n) for n in range(len(rows))]
    of = Cluster(
        racks=dict.fromkeys(range(4), ""),
        replicas=dict(zip(names, rows, strict=True)),
        sizes=dict.fromkeys(names, 10**9),
    )
    before, after, _ = expanded(of, 1, tolerances=ANY_SPREAD)
    assert after[2] == before[2]
    assert abs(after[0] - after[1]) <= 2 * TOLERANCE
    assert after[3] >= 1 - 2 * TOLERANCE


@pytest.mark.slow
def test_donors_of_a_topic_keep_their_share_of_it() -> None:
    of = dealt(9, 3, partitions=36)
    made = plan(of, action="expand", brokers=[9, 10, 11], tolerances={"topic_spread": 0.1})
    assert not made.summary.infeasible
    held = Counter(
        (name.topic, broker) for name, row in of.after(made).replicas.items() for broker in row
    )
    assert set(held.values()) <= {8, 9, 10}


@pytest.mark.slow
def test_racks_that_force_a_donor_below_its_share_are_named() -> None:
    """Each rack holds a replica of every partition, so those of /a share a third among more."""
    racks = {0: "/a", 1: "/a", 2: "/b", 3: "/b", 4: "/c", 5: "/c", 6: "/a"}
    names = [TopicPartition("t", n) for n in range(60)]
    rows = {name: (n % 2, 2 + n // 2 % 2, 4 + n // 4 % 2) for n, name in enumerate(names)}
    of = Cluster(racks=racks, replicas=rows, sizes=dict.fromkeys(names, 10**9))
    _, after, notes = expanded(of, 1)
    assert max(after[:2]) < 1 - TOLERANCE
    assert {0, 1, 6} <= notes


@st.composite
def with_new_brokers(draw: st.DrawFn) -> tuple[Cluster, int]:
    """Up to five brokers of any load, and one or two new ones."""
    brokers, new = draw(st.integers(2, 5)), draw(st.integers(1, 2))
    racks = draw(st.sampled_from([[""], ["/a", "/b"], ["/a", "/b", "/b"]]))
    count = draw(st.integers(4, 24))
    names = [TopicPartition(f"t{n % 3}", n // 3) for n in range(count)]
    some = st.integers(1, min(3, brokers)).flatmap(
        lambda n: st.permutations(range(brokers)).map(lambda order: order[:n])
    )
    return (
        Cluster(
            racks={b: racks[b % len(racks)] for b in range(brokers + new)},
            replicas={name: tuple(draw(some)) for name in names},
            sizes={name: draw(st.integers(1, 50)) for name in names},
        ),
        new,
    )


@pytest.mark.slow
@seed(20261127)
@examples(60)
@given(with_new_brokers(), st.sampled_from([{}, ANY_SPREAD]))
def test_no_donor_gives_more_than_down_to_its_share_unless_it_is_named(
    cluster: tuple[Cluster, int], tolerances: dict[str, None]
) -> None:
    of, new = cluster
    before, after, notes = expanded(of, new, tolerances=tolerances)
    one_byte = len(of.racks) / sum(
        (size or 0) * len(of.replicas[name]) for name, size in of.sizes.items()
    )
    for broker in list(of.racks)[:-new]:
        least = min(before[broker], 1 - TOLERANCE - 2 * one_byte)
        assert after[broker] >= least - 1e-9 or broker in notes


def given_at(held: Sequence[float], share: Sequence[float], at: float) -> float:
    return sum(max(h - at * s, 0.0) for h, s in zip(held, share, strict=True))


@seed(20261127)
@examples(60)
@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(1, 30)), min_size=1, max_size=6),
    st.integers(0, 60),
)
def test_at_the_level_the_donors_above_it_give_what_is_asked(
    brokers: list[tuple[int, int]], asked: int
) -> None:
    held, share = (np.array(side, float) for side in zip(*brokers, strict=True))
    found = float(level(held, share, asked))
    assert found >= 1
    gives = given_at(held.tolist(), share.tolist(), found)
    assert gives == pytest.approx(asked) if found > 1 and asked else gives <= asked + 1e-6
