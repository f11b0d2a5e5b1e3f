"""Versions of Kafka in the handbook: what came of the tests on each, and that none is left out."""

from __future__ import annotations

import re

from handbook.kafka_versions import (
    folders,
    kafka_versions_page,
    results,
    results_of_all,
    versions,
)
from handbook.sources import ROOT
from tests.versions.parts import PARTS


def test_every_version_that_the_target_runs_has_results_of_every_part_or_is_said_to_have_none() -> (
    None
):
    found, page = results(), kafka_versions_page()
    assert set(found) <= set(versions())
    assert all(set(each["parts"]) == set(PARTS) for each in found.values())
    for version in set(versions()) - set(found):
        assert re.search(rf"Not run yet: .*\b{re.escape(version)}\b", page)


def test_files_of_the_parts_are_there() -> None:
    files = [file for of_part in PARTS.values() for file in of_part]
    assert len(files) == len(set(files))
    assert all((ROOT / "tests" / file).is_file() for file in files)


def test_each_failure_and_each_reason_to_skip_is_on_the_page() -> None:
    page = kafka_versions_page()
    for each in results().values():
        assert all(test in page for test in each["failed"])
        for part in each["parts"].values():
            assert sum(part["reasons"].values()) == part.get("skipped", 0)
            assert all(reason.removeprefix("before ") in page for reason in part["reasons"])


def test_all_tests_on_brokers_are_of_versions_and_folders_that_there_are() -> None:
    page = kafka_versions_page()
    assert set(results_of_all()) <= set(versions())
    for by_folder in results_of_all().values():
        assert set(by_folder) <= folders()
        for each in by_folder.values():
            assert all((ROOT / file).is_file() for file in each["files"])
            for row in each["files"].values():
                assert all(said in page for said in (*row["reasons"], *row["failed"]))
