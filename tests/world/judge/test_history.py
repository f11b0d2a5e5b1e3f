"""What a reading can have shown: as much as the broker that answered had read."""

from __future__ import annotations

import pytest

from include.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from world.history import METADATA_LAG_S, OTHERS, ConfigWrite, History
from world.kafka.metadata import MetadataLog, Table

DEFAULT = ConfigResource.cluster_default()


class Written:
    """A history of three values of one key, committed a tenth of a second apart."""

    def __init__(self) -> None:
        self.log = MetadataLog()
        self.history = History(self.log)
        for at in (0.0, 0.1, 0.2):
            self.write(at, OTHERS)

    def write(self, at: float, owner: str) -> None:
        self.log.append(at, [Table("configs", DEFAULT, {"rate": f"{at}"})])
        self.history.acted(owner, owner, at)

    def read_of_last(self, at: float, read_to: int) -> int | None:
        """What a write counts as having read, of a process that has read just before."""
        self.history.read("A", at, {DEFAULT: read_to})
        self.write(at, "A")
        last = self.history.writes[-1]
        assert isinstance(last, ConfigWrite)
        return last.read


@pytest.mark.parametrize(("read_to", "shown"), [(0, 0), (1, 1), (2, 2)])
def test_a_broker_that_is_behind_shows_what_it_has_read(read_to: int, shown: int) -> None:
    assert Written().read_of_last(0.25, read_to) == shown


def test_a_broker_that_has_read_all_shows_all() -> None:
    written = Written()
    read = written.read_of_last(0.25, 3)
    assert read is not None
    assert read > written.history.writes[2].number


def test_a_broker_that_is_far_behind_excuses_nothing_that_is_old() -> None:
    assert Written().read_of_last(0.15 + METADATA_LAG_S, 0) == 2


@pytest.mark.parametrize(("asked", "noted"), [("0:1", True), ("0:1,0:3", False)])
def test_items_that_are_on_a_list_already_when_they_are_asked_for_are_the_askers_too(
    asked: str, noted: bool
) -> None:
    topic, key = ConfigResource.topic("t"), "leader.replication.throttled.replicas"
    log = MetadataLog()
    history = History(log)
    log.append(0.0, [Table("topics", "t", "id"), Table("configs", topic, {key: "0:1,0:2"})])
    history.acted(OTHERS, OTHERS, 0.0)
    before = len(history.writes)
    history.asks("A", "A:task", [ConfigChange(topic, key, ConfigOperation.APPEND, asked)])
    history.acted("A", "A:task", 0.1)
    assert [
        (write.owner, write.before, write.after)
        for write in history.writes[before:]
        if isinstance(write, ConfigWrite)
    ] == [("A", "0:1,0:2", "0:1,0:2")] * noted
