"""What the brokers' versions of Kafka lack for a plan, in words."""

from __future__ import annotations

from rehome.execution.dry_run.typed_finding import FoundKind as Kind
from rehome.execution.dry_run.typed_finding import Texts

VERSION_TEXTS: Texts = {
    Kind.VERSIONS_NOT_KNOWN: lambda finding: (
        f"did not say which versions of requests it can: {finding.why}"
    ),
    Kind.REPLICAS_NOT_CHECKED: "before Kafka 4.1 the controller does not check that a reassignment "
    "keeps the number of replicas",
    Kind.ENDS_OUT_OF_SYNC: "before Kafka 3.8 a reassignment that removes replicas may end while "
    "replicas that stay are not in sync (KAFKA-15665)",
    Kind.COPY_STANDS: "holds a copy between its log dirs that has every message and has not "
    "ended (KAFKA-17190): if it stands, no other ends either",
    Kind.COPIES_MAY_STAND: "on Kafka 3.7 and 3.8 copies between its log dirs may have every "
    "message and never end, once one was cancelled or its topic was deleted (KAFKA-17190)",
}
VERSION_STEPS: Texts = {
    Kind.VERSIONS_NOT_KNOWN: "Check the broker: what it lacks is not known.",
    Kind.REPLICAS_NOT_CHECKED: "Let no other client change replication factors while the plan "
    "runs.",
    Kind.ENDS_OUT_OF_SYNC: "See that all replicas are in sync before it starts.",
    Kind.COPY_STANDS: "Trigger a new run: a copy that has just got its last message looks the "
    "same. If this is found again, restart the broker: the copy then ends by itself.",
    Kind.COPIES_MAY_STAND: "Where the plan stands still with nothing left to copy, restart the "
    "broker: the copies then end by themselves.",
}
