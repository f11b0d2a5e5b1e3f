"""What Airflow reads of the package."""

from __future__ import annotations

import re
from importlib.metadata import distributions
from pathlib import Path
from pkgutil import resolve_name

from rehome.airflow_plugin import RehomePlugin
from rehome.notifiers.webhook import WebhookNotifier
from rehome.provider import provider_info
from rehome.version import REHOME_VERSION

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"


def test_its_extra_links_are_those_of_the_plugin() -> None:
    """Airflow's worker takes the links of providers, its page those of plugins."""
    info = provider_info()
    links = {type(link) for link in RehomePlugin.operator_extra_links}
    assert {resolve_name(name) for name in info["extra-links"]} == links
    assert info["versions"] == [REHOME_VERSION]
    assert [resolve_name(name) for name in info["notifications"]] == [WebhookNotifier]


def test_a_checkout_tells_airflow_of_it_with_the_same_version() -> None:
    (found,) = (each for each in distributions(path=[str(PLUGINS)]) if each.name == "rehome")
    assert found.version == REHOME_VERSION
    (point,) = found.entry_points
    assert (point.group, point.load()) == ("apache_airflow_provider", provider_info)


def test_the_changelog_begins_with_that_version_and_its_day() -> None:
    changes = (PLUGINS.parent / "CHANGELOG.md").read_text()
    first = re.search(r"^## (\S+), (?:\d{4}-\d\d-\d\d|not released yet)$", changes, re.M)
    assert first is not None
    assert first[1] == REHOME_VERSION
    assert changes.index(first[0]) == changes.index("## ")
