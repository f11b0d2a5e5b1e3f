"""A clusters file gets a second entry for its cluster, and is as before when that is gone."""

from __future__ import annotations

import pytest

from world.airflow.standing_in import CONNECTION
from world.cases_of_actors import TWO_ENTRIES
from world.judge.flights import Span
from world.rehome.two_entries import OTHER, entries_seen
from world.stage import Stage


@pytest.mark.slow
def test_the_file_is_as_before_and_what_was_known_begins_with_the_snapshot_that_shows_it() -> None:
    stage = Stage(TWO_ENTRIES)
    stage.run()
    (known,) = entries_seen(stage)
    stage.end()
    assert stage.rehomes["A"].installation.file.clusters == {}
    assert known.known == [Span(12.0, 212.0)]
    assert known.began["A:run-1"] == 20.0


def test_the_second_entry_names_the_other_connection() -> None:
    stage = Stage(TWO_ENTRIES)
    stage.run()
    site = stage.rehomes["A"].installation
    stage.two_entries.add(site)
    stage.end()
    names = [entry.connection for entry in site.file.clusters.values()]
    assert names == [CONNECTION, OTHER]
