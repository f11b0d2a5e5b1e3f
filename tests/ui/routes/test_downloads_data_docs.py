"""Data Docs as people open them: through the page's guard, in a browser, without scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from playwright.sync_api import expect

from rehome.quality.engine.frames import frame_of
from rehome.quality.engine.results import GateResult
from rehome.quality.engine.rules import every_rule, rules_of
from rehome.quality.engine.runner import run_gate
from rehome.quality.published.project import SITE, Run, definitions, keep_newest, publish
from rehome.run.context import run_digest
from tests.session.browser import opened
from tests.session.spark_session import spark
from tests.ui.site import Site, served, token_of

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.testclient import TestClient
    from playwright.sync_api import Browser
    from pyspark.sql import SparkSession

__all__ = ["spark"]

EVIL = "<script>alert(1)</script>"
BROKEN = "broker 7, error disk gone <script>alert(1)</script>"
DAG, RUN = "reassign_partitions", "manual__p1"
AT = datetime(2026, 11, 23, 22, 0, tzinfo=UTC)


def _broker(number: int, **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"broker": number, "live_if_balanced": True, "answered_if_live": True}
    row |= {"times_listed": 1, "known_log_dirs": 1, "rack": "/a", "rack_path": ["a"]}
    return row | {"error": "", **changes}


@pytest.fixture(scope="module")
def judged(spark: SparkSession) -> GateResult:
    """Of two brokers, one is dead and on a path that is not that of its rack."""
    dead = _broker(7, live_if_balanced=False, error=f"disk gone {EVIL}", rack_path=["b"])
    table = frame_of(spark, pa.Table.from_pylist([_broker(1), dead]))
    rules = rules_of("snapshot", ["brokers"], [])
    return run_gate("snapshot", {"brokers": table}, rules)


@pytest.fixture(scope="module")
def published(judged: GateResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two plans leave behind: ``p1`` and ``p2`` below ``plans``, and ``quality``."""
    root = tmp_path_factory.mktemp("published")
    for name in ("p1", "p2"):
        plan, project = (root / "plans" / name).as_uri(), (root / "quality").as_uri()
        publish(Run(name, AT), [judged], plan, project)
    return root


@pytest.fixture
def docs(site: Site, published: Path) -> Site:
    """A plan of the ledger with Data Docs."""
    site.plan("p1")
    copytree(published / "plans" / "p1" / SITE, site.warehouse / "plans" / "p1" / SITE)
    return site


def test_the_dead_broker_is_found(judged: GateResult) -> None:
    found = {item.name: item.offending_rows for item in judged.failed}
    assert found["every broker whose load is balanced is alive"] == (BROKEN,)
    assert len(found) == 2
    assert not judged.crashed


def test_great_expectations_opens_the_project_with_all_suites_and_the_history(
    published: Path,
) -> None:
    import great_expectations as gx

    context = gx.get_context(mode="file", project_root_dir=published / "quality")
    names = {f"{gate}.{table}" for gate, table, _ in every_rule()}
    assert {suite.name for suite in context.suites.all()} == names
    assert {checkpoint.name for checkpoint in context.checkpoints.all()} == names
    suite = context.suites.get("snapshot.brokers")
    assert {item.meta["rule"] for item in suite.expectations} == {
        rule.name for rule in rules_of("snapshot", ["brokers"], [])
    }
    keys = context.validation_results_store.list_keys()
    assert {key.run_id.run_name for key in keys} == {"p1", "p2"}
    result = context.validation_results_store.get(keys[0])
    broken = [item["result"] for item in result["results"] if not item["success"]]
    assert [row["broker"] for item in broken[:1] for row in item["partial_unexpected_index_list"]]


def test_two_jobs_write_the_same_definitions(published: Path, tmp_path: Path) -> None:
    definitions.cache_clear()  # another job is another process
    publish(Run("p3", AT), [], (tmp_path / "p3").as_uri(), tmp_path.as_uri())
    for path in definitions():
        assert (tmp_path / path).read_bytes() == (published / "quality" / path).read_bytes()


def test_only_the_newest_runs_are_kept(tmp_path: Path) -> None:
    for name, at in (("old", "2024"), ("new", "2026"), ("middle", "2025")):
        for suite in ("a", "b"):
            (tmp_path / suite / name / at).mkdir(parents=True)
    keep_newest(tmp_path.as_uri(), "*/*", 2)
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/*")}
    assert left == {"a/new", "b/new", "a/middle", "b/middle"}


def test_a_plan_without_docs_says_so_and_other_files_are_not_served(
    client: Callable[[str], TestClient], docs: Site
) -> None:
    docs.plan("p2")
    viewer = client("viewer")
    assert viewer.get(f"data-docs/{DAG}/manual__p2/index.html").status_code == 404
    for name in ("../gates.json", "%2e%2e/gates.json", "index.txt", "x/../../report.html"):
        assert viewer.get(f"data-docs/{DAG}/{RUN}/{name}").status_code == 404
    assert client("").get(f"data-docs/{DAG}/{RUN}/index.html").status_code == 401


def test_docs_of_a_run_that_was_refused_are_found_by_the_run(
    client: Callable[[str], TestClient], docs: Site, published: Path
) -> None:
    name = f"20261123T220000Z-{run_digest(DAG, 'manual__no')}"
    copytree(published / "plans" / "p1" / SITE, docs.warehouse / "plans" / name / SITE)
    found = client("viewer").get(f"data-docs/{DAG}/manual__no/index.html")
    assert found.status_code == 200
    assert "sandbox" in found.headers["Content-Security-Policy"]
    assert "script-src" not in found.headers["Content-Security-Policy"]


@pytest.fixture
def url(page: FastAPI, docs: Site) -> Iterator[str]:
    with served(page) as address:
        yield f"{address}/rehome"


def test_suites_results_and_failing_rows_are_read_in_a_browser(browser: Browser, url: str) -> None:
    with opened(browser, url, token=token_of("viewer")) as seen:
        page = seen.page
        page.goto(f"{url}/plans/p1?tab=checks")
        docs = page.get_by_role("link", name="Data Docs of Great Expectations")
        page.goto(url.removesuffix("/rehome") + str(docs.get_attribute("href")))
        tables = page.get_by_role("table")
        expect(tables.first).to_contain_text("p1")
        expect(tables.first).to_contain_text("snapshot.brokers")
        page.get_by_role("link", name="open").first.click()
        expect(page.get_by_text("Expectation Validation Result")).to_be_visible()
        expect(page.get_by_text(BROKEN)).to_be_visible()
        expect(page.locator("body")).to_contain_text("every broker whose load is balanced is alive")
        page.go_back()
        page.get_by_role("link", name="open").last.click()
        expect(page.get_by_role("heading", name="Expectation Suite")).to_be_visible()
        expect(page.locator("body")).to_contain_text("times_listed")
