"""Corruptions of a sound snapshot, each on rows of its own, and what each rule says of all."""

from __future__ import annotations

from collections.abc import Callable

from tests.quality.snapshots import Row, Rows


def dead_broker(rows: Rows) -> None:
    row = rows.broker(1) | {"broker": 5, "live": False, "answered": False, "error": "gone"}
    rows.brokers.append(row)


def silent_broker(rows: Rows) -> None:
    rows.broker(3).update(answered=False, error="REQUEST_TIMED_OUT (7)")


def levels_without_a_slash(rows: Rows) -> None:
    rows.broker(4).update(rack="dc1/r4", rack_path=["dc1", "r4"])


def rack_split_wrongly(rows: Rows) -> None:
    rows.broker(2)["rack_path"] = ["dc0"]


def broker_twice(rows: Rows) -> None:
    rows.brokers.append(dict(rows.broker(1)))


def broker_without_log_dirs(rows: Rows) -> None:
    rows.brokers.append(rows.broker(1) | {"broker": 6})


def offline_log_dir(rows: Rows) -> None:
    rows.log_dir(1, "/data/1").update(offline=True, error="KAFKA_STORAGE_ERROR (56)")


def stray_replicas(rows: Rows) -> None:
    rows.log_dir(1, "/data/0")["stray_replicas"] = 2


def more_free_than_there_is(rows: Rows) -> None:
    rows.log_dir(3, "/data/1")["usable_bytes"] = 2_000_000


def log_dir_twice(rows: Rows) -> None:
    rows.log_dirs.append(dict(rows.log_dir(4, "/data/1")))


def hidden_topic(rows: Rows) -> None:
    rows.topics.append({"topic": "secret", "internal": False, "visible": False})


def topic_twice(rows: Rows) -> None:
    rows.topics.append(_topic("twice", 0))
    rows.topics.append(_topic("twice", 0))


def partitions_missing(rows: Rows) -> None:
    rows.topics.append(_topic("short", 2))
    rows.replicas += [row | {"topic": "short"} for row in rows.replicas if row["partition"] == 0]


def topic_not_listed(rows: Rows) -> None:
    rows.replicas.append(_one_replica("unlisted"))


def broker_not_listed(rows: Rows) -> None:
    rows.topics.append(_topic("lost", 1))
    rows.replicas.append(_one_replica("lost") | {"broker": 9, "log_dir": None})


def replica_in_no_log_dir(rows: Rows) -> None:
    rows.replica(0, 1)["log_dir"] = None


def replica_in_an_unknown_log_dir(rows: Rows) -> None:
    rows.replica(7, 0)["log_dir"] = "/data/9"


def replica_without_size(rows: Rows) -> None:
    rows.replica(1, 0)["size_bytes"] = None


def replica_of_negative_size(rows: Rows) -> None:
    rows.replica(1, 1)["size_bytes"] = -1


def replica_without_offset(rows: Rows) -> None:
    rows.replica(2, 0)["log_end_offset"] = None


def leader_out_of_sync(rows: Rows) -> None:
    rows.replica(8, 0)["in_isr"] = False


def partition_with_two_leaders(rows: Rows) -> None:
    rows.replica(9, 1)["is_leader"] = True


def replica_twice_on_a_broker(rows: Rows) -> None:
    rows.replica(4, 1)["broker"] = rows.replica(4, 0)["broker"]


def replica_out_of_order(rows: Rows) -> None:
    rows.replica(5, 1)["position"] = 2


def replica_row_twice(rows: Rows) -> None:
    rows.replicas.append(dict(rows.replica(10, 1)))


def reassignment_in_flight(rows: Rows) -> None:
    rows.replica(6, 1)["adding"] = True


def log_dir_move_in_flight(rows: Rows) -> None:
    rows.replica(11, 0).update(future_log_dir="/data/1", future_size_bytes=5)


def _topic(name: str, partitions: int) -> Row:
    return Rows().topics[0] | {"topic": name, "partitions": partitions}


def _one_replica(topic: str) -> Row:
    return Rows().replica(0, 0) | {"topic": topic}


# What each rule says of the snapshot in which everything is wrong at once. Every corruption is on
# rows of its own, so a rule that shows another row than those it is meant to is too broad.
BROKEN_ROWS: dict[str, tuple[str, ...]] = {
    "every broker whose load is balanced is alive": ("broker 5, error gone",),
    "every live broker answered": ("broker 3, error REQUEST_TIMED_OUT (7)",),
    "every broker that answered reports its log dirs": ("broker 6",),
    "a broker is listed once": ("broker 1", "broker 1"),
    "a broker's rack path matches its rack": (
        "broker 2, rack /dc0/r2, rack_path ['dc0']",
        "broker 4, rack dc1/r4, rack_path ['dc1', 'r4']",
    ),
    "no broker whose load is balanced has an offline log dir": (
        "broker 1, log_dir /data/1, error KAFKA_STORAGE_ERROR (56)",
    ),
    "no broker whose load is balanced holds replicas that the metadata does not know": (
        "broker 1, log_dir /data/0, stray_replicas 2",
    ),
    "the free space of a log dir is at most the size of its volume": (
        "broker 3, log_dir /data/1, total_bytes 1000000, usable_bytes 2000000",
    ),
    "a log dir is listed once": ("broker 4, log_dir /data/1", "broker 4, log_dir /data/1"),
    "no topic is hidden from this principal": ("topic secret",),
    "a topic is listed once": ("topic twice", "topic twice"),
    "all partitions of a topic are listed": (
        "topic short, partitions 2, partitions_seen 1, first_partition 0, last_partition 0",
    ),
    "every partition is of a topic that is listed": ("topic unlisted, partition 0",),
    "every replica is on a broker that is listed": ("topic lost, partition 0, broker 9",),
    "every replica lies in a log dir": (
        "topic lost, partition 0, broker 9",
        "topic payments, partition 0, broker 2",
    ),
    "the log dir of a replica is one that its broker has": (
        "topic payments, partition 7, broker 4, log_dir /data/9",
    ),
    "every replica has a size": (
        "topic payments, partition 1, broker 2",
        "topic payments, partition 1, broker 3, size_bytes -1",
    ),
    "every replica's log end offset is known": ("topic payments, partition 2, broker 3",),
    "a leader is in sync": ("topic payments, partition 8, leaders_out_of_sync 1",),
    "no partition has two leaders": ("topic payments, partition 9, leaders 2",),
    "the replicas of a partition are on distinct brokers": (
        "topic payments, partition 4",
        "topic payments, partition 10",
    ),
    "the replicas of a partition are listed in order": (
        "topic payments, partition 5",
        "topic payments, partition 10",
    ),
    "no reassignment is in flight": ("topic payments, partition 6",),
    "no move between log dirs is in flight": ("topic payments, partition 11",),
}
CORRUPTIONS: tuple[Callable[[Rows], None], ...] = (
    *(dead_broker, silent_broker, levels_without_a_slash, rack_split_wrongly, broker_twice),
    *(broker_without_log_dirs, offline_log_dir, stray_replicas, more_free_than_there_is),
    *(log_dir_twice, hidden_topic, topic_twice, partitions_missing, topic_not_listed),
    *(broker_not_listed, replica_in_no_log_dir, replica_in_an_unknown_log_dir),
    *(replica_without_size, replica_of_negative_size, replica_without_offset),
    *(leader_out_of_sync, partition_with_two_leaders),
    *(replica_twice_on_a_broker, replica_out_of_order, replica_row_twice),
    *(reassignment_in_flight, log_dir_move_in_flight),
)
