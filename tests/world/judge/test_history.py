"""What a reading can have shown: as much as the broker that answered had read."""

from __future__ import annotations

import pytest

from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
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


LIST = (ConfigResource.topic("t"), "leader.replication.throttled.replicas")


def listed(value: str) -> History:
    """The history of a topic whose list holds this."""
    log = MetadataLog()
    history = History(log)
    log.append(0.0, [Table("topics", "t", "id"), Table("configs", LIST[0], {LIST[1]: value})])
    history.acted(OTHERS, OTHERS, 0.0)
    history.writes.clear()
    return history


def append(history: History, items: str) -> None:
    history.asks("A", "A:task", [ConfigChange(*LIST, ConfigOperation.APPEND, items)], 0.0)


def of_a(history: History) -> list[tuple[str | None, str | None, str | None]]:
    return [(w.before, w.after, w.asked) for w in history.writes if isinstance(w, ConfigWrite)]


@pytest.mark.parametrize(("asked", "noted"), [("0:1", True), ("0:1,0:3", False)])
def test_items_that_are_on_a_list_already_when_they_are_asked_for_are_noted(
    asked: str, noted: bool
) -> None:
    history = listed("0:1,0:2")
    append(history, asked)
    history.acted("A", "A:task", 0.1)
    assert of_a(history) == [("0:1,0:2", "0:1,0:2", asked)] * noted


def test_items_of_a_request_that_was_lost_are_noted_once() -> None:
    history = listed("0:2")
    append(history, "0:1")
    history.lost("A", "A:task", 0.1)
    history.acted("A", "A:task", 0.2)
    assert of_a(history) == [("0:2", "0:2", "0:1")]
