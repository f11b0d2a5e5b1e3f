"""What the driver gets by the size of the snapshot."""

from __future__ import annotations

import pytest

from rehome.spark.driver_memory import memory_conf

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("replicas", "conf"),
    [
        ([], {}),
        ([MILLION], {}),
        ([2 * MILLION], {"spark.driver.memory": "2169m"}),
        ([10 * MILLION], {"spark.driver.memory": "6747m"}),
        ([10_000] * 100, {}),
        (
            [100_000] * 100,
            {"spark.driver.memory": "2989m", "spark.driver.maxResultSize": "1908m"},
        ),
        ([2 * MILLION, 1_000], {"spark.driver.memory": "2551m"}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_driver_gets_more_than_sparks_own_where_that_is_not_enough(
    replicas: list[int], conf: dict[str, str]
) -> None:
    assert memory_conf(replicas, in_cluster=False) == conf


@pytest.mark.parametrize(("replicas", "overhead"), [(1_000, "641m"), (10 * MILLION, "4455m")])
def test_where_a_cluster_manager_reserves_memory_python_has_its_own_part(
    replicas: int, overhead: str
) -> None:
    conf = memory_conf([replicas], in_cluster=True)
    assert conf["spark.driver.memoryOverhead"] == overhead
