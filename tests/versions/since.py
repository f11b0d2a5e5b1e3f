"""Tests of what brokers can only since a version of Kafka."""

from __future__ import annotations

from zipfile import ZipFile

import pytest

from local.kafka.jvm import JARS, VERSION

_MAJOR, _MINOR, *_ = map(int, VERSION.split("."))
RELEASE = (_MAJOR, _MINOR)
"""Major and minor of the version that tests run on."""


def since(release: tuple[int, int], before: str) -> pytest.MarkDecorator:
    """Skip the test on brokers that are older.

    :param before: what is so of those.
    """
    said = f"before {release[0]}.{release[1]} {before}"
    return pytest.mark.skipif(release > RELEASE, reason=said)


honours_default = since((3, 9), "brokers do not honour a default rate (KAFKA-10190)")
copies_end = since((3, 9), "copies between log dirs may never end (KAFKA-17190)")
checks_replicas = since((4, 1), "the controller does not check the number of replicas (KIP-860)")
cordons = since((4, 3), "log dirs cannot be cordoned (KIP-1066)")
modelled = since((4, 3), "there is no model of Kafka to compare with (docs/decisions/044)")


def class_of_tool(name: str) -> str:
    """The class of one of Kafka's own tools; some have moved to another package with a version.

    :param name: ``AclCommand``.
    """
    (jar,) = JARS.glob("kafka-tools-[0-9]*.jar")
    with ZipFile(jar) as classes:
        moved = f"org/apache/kafka/tools/{name}.class" in classes.namelist()
    return f"{'org.apache.kafka.tools' if moved else 'kafka.admin'}.{name}"
