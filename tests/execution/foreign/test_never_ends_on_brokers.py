"""What cannot end while brokers are dead, and what ends it, on real brokers."""

from __future__ import annotations

import json
from pathlib import Path

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.domain.clock import utc_now
from rehome.domain.kafka import PartitionState, TopicPartition
from rehome.execution.foreign.flight_words import flight_line
from rehome.execution.foreign.in_flight import Flight
from rehome.execution.foreign.read_flights import describe_reassignments
from rehome.execution.observation.foreign_reassignments import (
    CancelOutlook,
    Hindrance,
    NeverEnds,
)
from rehome.ledger.store import Ledger
from tests.conftest import Topics, impatient_gateway
from tests.dags.clusters import to

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


def state_of(gateway: ClusterGateway, partition: TopicPartition) -> PartitionState:
    return gateway.describe_topics([partition.topic])[partition.topic].partitions[0]


def test_where_no_replica_of_before_is_in_sync_another_target_ends_it_and_no_cancel(
    mortal: LocalCluster, ledger: Ledger, tmp_path: Path
) -> None:
    topics = Topics(mortal)
    copied, shrunk = (TopicPartition(topics.create([row]), 0) for row in ([1], [2, 3, 4]))
    with impatient_gateway(mortal) as gateway:
        mortal.kill(4)
        wait_until(lambda: 4 not in gateway.describe_cluster().brokers, "broker 4 to be gone", 240)
        gateway.alter_reassignments(
            {copied: [3, 4], shrunk: [2, 4]}, allow_replication_factor_change=True
        )
        wait_until(lambda: 3 in state_of(gateway, copied).isr, "broker 3 to be in sync")
        mortal.kill(1)
        wait_until(lambda: state_of(gateway, copied).leader == 3, "broker 3 to lead", 240)

        def described() -> dict[TopicPartition, Flight]:
            found = describe_reassignments(gateway, ledger, utc_now())
            return {each.partition: each for each in found.reassignments}

        flights = described()
        assert flights[copied].hindrance == Hindrance(
            NeverEnds.TARGET_AWAY, (4,), CancelOutlook.REFUSED, (3,)
        )
        kept = flights[shrunk].hindrance
        assert kept is not None
        assert (kept.kind, kept.brokers, kept.cancel) == (
            *(NeverEnds.KEPT_AWAY, (4,), CancelOutlook.TAKEN),
        )
        refused = gateway.alter_reassignments({copied: None})[copied]
        assert refused is not None
        assert refused.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert "among them broker 3 (in sync)" in flight_line(flights[copied])
        file = tmp_path / "another.json"
        file.write_text(json.dumps(to(copied.topic, {0: [3, 2]})))
        done = mortal.run_tool(
            TOOL, "--execute", "--additional", "--reassignment-json-file", str(file)
        )
        assert "Successfully started" in done.stdout, done.stdout + done.stderr
        wait_until(lambda: copied not in gateway.list_reassignments(), "it to have ended")
        wait_until(lambda: state_of(gateway, copied).replicas == (3, 2), "the new replicas")
        assert gateway.alter_reassignments({shrunk: None}) == {shrunk: None}
