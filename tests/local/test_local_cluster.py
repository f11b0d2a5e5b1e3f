"""What the demo and every other test take for granted about the local cluster."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from local.kafka.cluster import ClusterStartError, LocalCluster
from local.process import guard
from local.process.waiting import wait_until

pytestmark = pytest.mark.brokers
ROOT = Path(__file__).resolve().parents[2]
TOPIC_TOOL = "org.apache.kafka.tools.TopicCommand"
RACKS = ["/dc0/r0", "/dc0/r1", "/dc1/r0"]


@pytest.fixture(scope="module")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster whose brokers these tests take away; each gives them back, but for the last."""
    cluster = LocalCluster(tmp_path_factory.mktemp("three") / "kafka", brokers=3, racks=RACKS)
    started = time.monotonic()
    with cluster:
        print(f"\n1 controller and 3 brokers were up after {time.monotonic() - started:.1f} s")
        yield cluster


def _children() -> set[psutil.Process]:
    """What this process itself has started; what those start in their turn is not the cluster's."""
    return set(psutil.Process().children())


def _alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    return [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


def test_every_broker_is_there_with_its_rack_and_log_dirs(three_brokers: LocalCluster) -> None:
    admin = AdminClient(three_brokers.client_settings())
    nodes = admin.describe_cluster().result(60).nodes
    assert {node.id: node.rack for node in nodes} == dict(zip((1, 2, 3), RACKS, strict=True))
    for broker in three_brokers.broker_ids:
        directories = three_brokers.log_dirs(broker)
        assert len(directories) == 2
        assert all((path / "meta.properties").is_file() for path in directories)


def test_no_jvm_writes_performance_data_which_a_killed_one_would_leave_behind(
    three_brokers: LocalCluster,
) -> None:
    written = {path.name for path in Path("/tmp").glob("hsperfdata_*/*")}
    assert not written & set(map(str, three_brokers.pids.values()))


def test_killed_and_paused_brokers_leave_the_metadata_and_return(
    three_brokers: LocalCluster,
) -> None:
    three_brokers.kill(1)
    three_brokers.pause(2)
    assert 1 not in three_brokers.pids
    wait_until(lambda: three_brokers.live_brokers() == {3}, "brokers 1 and 2 to be fenced", 240)
    three_brokers.resume(2)
    three_brokers.restart(1)
    wait_until(lambda: three_brokers.live_brokers() == {1, 2, 3}, "all brokers", 240)


def test_a_broker_that_is_shut_down_leaves_early_and_returns_on_its_old_address(
    three_brokers: LocalCluster,
) -> None:
    old_pid, address = three_brokers.pids[3], three_brokers.address(3)
    three_brokers.shutdown(3)
    wait_until(lambda: three_brokers.live_brokers() == {1, 2}, "broker 3 to be gone", 240)
    three_brokers.restart(3)
    assert three_brokers.pids[3] != old_pid
    wait_until(lambda: three_brokers.live_brokers() == {1, 2, 3}, "all brokers", 240)
    admin = AdminClient({"bootstrap.servers": address})
    assert 3 in admin.list_topics(timeout=60).brokers


def test_without_the_controller_administration_waits_and_resumes_with_it(
    three_brokers: LocalCluster,
) -> None:
    admin = AdminClient(three_brokers.client_settings())
    three_brokers.stop_controller()
    try:
        refused = admin.create_topics([NewTopic("waits", 1, 1)], request_timeout=2)["waits"]
        with pytest.raises(KafkaException):
            refused.result(60)
    finally:
        three_brokers.start_controller()

    def created() -> bool:
        answer = admin.create_topics([NewTopic("resumes", 1, 1)], request_timeout=5)["resumes"]
        return answer.exception(60) is None or "exists" in str(answer.exception())

    wait_until(created, "a topic to be created", 240)


def test_kafkas_own_tools_run_against_the_cluster(three_brokers: LocalCluster) -> None:
    made = three_brokers.run_tool(TOPIC_TOOL, "--create", "--topic", "by-a-tool")
    assert made.returncode == 0, made.stderr
    admin = AdminClient(three_brokers.client_settings())
    wait_until(lambda: "by-a-tool" in admin.list_topics(timeout=60).topics, "the tool's topic")


def test_stop_leaves_no_process(three_brokers: LocalCluster) -> None:
    """The last of these tests: the cluster is gone afterwards."""
    running = _alive(list(_children()))
    mine = [p for p in running if p.pid in three_brokers.pids.values()]
    assert len(mine) == 4
    guards = [p for p in running if guard.__file__ in p.cmdline()]
    three_brokers.pause(1)
    three_brokers.stop()
    assert not _alive(mine)
    assert len(_alive(guards)) == len(guards) - 1


def test_a_cluster_that_cannot_start_says_why_and_leaves_no_process(tmp_path: Path) -> None:
    before = _children()
    cluster = LocalCluster(tmp_path, brokers=1, broker_config={"log.retention.ms": "soon"})
    with pytest.raises(ClusterStartError, match="soon"):
        cluster.start()
    assert not _children() - before


_CALLER = """
import sys
from pathlib import Path
from local.kafka.cluster import LocalCluster

with LocalCluster(Path(sys.argv[1]), brokers=1) as cluster:
    print("up", flush=True)
    sys.stdin.read()
"""


# test_guard.py shows in `make test` what ends them.
@pytest.mark.long
def test_no_jvm_outlives_a_caller_that_is_killed(tmp_path: Path) -> None:
    caller = subprocess.Popen(
        [sys.executable, "-c", _CALLER, str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    processes: list[psutil.Process] = []
    with caller:
        try:
            assert caller.stdout is not None
            assert caller.stdout.readline() == b"up\n"
            processes = psutil.Process(caller.pid).children(recursive=True)
            assert sum("kafka.Kafka" in process.cmdline() for process in processes) == 2
        finally:
            caller.kill()
    try:
        wait_until(lambda: not _alive(processes), "the caller's processes to be gone", 240)
    finally:
        for process in _alive(processes):
            process.kill()
