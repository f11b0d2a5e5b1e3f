"""Catalogue, mapping, dashboard and alert rules go by the same names."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from monitoring.statsd_mapping import statsd_mapping
from rehome.metrics import catalog
from rehome.metrics.catalog import METRICS, MetricKind, dotted_name, in_prometheus

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "monitoring"
KNOWN = {in_prometheus(metric): metric for metric in METRICS}


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("writer", ROOT / "bin" / "write_monitoring.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((MONITORING / "grafana_dashboard.json").read_text())
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load((MONITORING / "alert_rules.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def named(expression: str) -> set[str]:
    return set(re.findall(r"\bairflow_\w+", expression))


def test_the_files_are_as_the_catalogue_makes_them(writer: ModuleType) -> None:
    for name, text in writer.texts().items():
        assert (MONITORING / name).read_text() == text, f"run bin/write_monitoring.py for {name}"


def test_another_prefix_is_in_every_file(writer: ModuleType) -> None:
    for name, text in writer.texts("prod.airflow").items():
        assert "prod_airflow_rehome_" in text, name
        assert not re.search(r"(?<!prod_)airflow_rehome", text), name
        assert not re.search(r"(?<!prod\.)airflow\.rehome", text), name


def test_a_panel_shows_every_metric_and_no_other_one() -> None:
    shown = {name for p in panels() for target in p["targets"] for name in named(target["expr"])}
    assert shown == set(KNOWN)


def test_rules_speak_of_metrics_that_there_are() -> None:
    assert {name for rule in rules() for name in named(rule["expr"])} <= set(KNOWN)
    assert all(rule["annotations"].keys() == {"summary", "description"} for rule in rules())
    alerts = [rule["alert"] for rule in rules()]
    assert len(alerts) == len(set(alerts))


def test_series_of_a_plan_are_shown_and_judged_only_while_it_is_polled() -> None:
    fresh = in_prometheus(catalog.FRESH_UNTIL)
    reported = [target["expr"] for panel in panels() for target in panel["targets"]]
    for expression in (*reported, *(rule["expr"] for rule in rules())):
        plans = {name for name in named(expression) if name.startswith("airflow_rehome_plan_")}
        assert not plans or fresh in plans, expression


def test_panels_are_apart_and_ask_the_source_that_is_chosen() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard()["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not taken & cells, panel["title"]
        taken |= cells
    assert {panel["datasource"]["uid"] for panel in panels()} == {"${datasource}"}
    assert len({panel["id"] for panel in dashboard()["panels"]}) == len(dashboard()["panels"])
    variables = [item["name"] for item in dashboard()["templating"]["list"]]
    assert variables == ["datasource", "cluster", "plan"]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_the_mapping_turns_a_dotted_name_into_its_labels(metric: catalog.Metric) -> None:
    values = {label: f"v-{label}" for label in metric.labels}
    line = f"airflow.{dotted_name(metric, values)}"
    matching = [rule for rule in statsd_mapping()["mappings"] if _matches(rule["match"], line)]
    (rule,) = matching
    parts = line.split(".")
    wildcards = [
        part for part, star in zip(parts, rule["match"].split("."), strict=True) if star == "*"
    ]
    labels = {name: wildcards[int(place[1:]) - 1] for name, place in rule["labels"].items()}
    assert labels == {label.value: value for label, value in values.items()}
    assert rule["name"] == in_prometheus(metric)
    assert rule["match_metric_type"] == (
        "counter" if metric.kind is MetricKind.COUNTER else "gauge"
    )


def _matches(pattern: str, line: str) -> bool:
    wanted, given = pattern.split("."), line.split(".")
    return len(wanted) == len(given) and all(
        want in ("*", part) for want, part in zip(wanted, given, strict=True)
    )
