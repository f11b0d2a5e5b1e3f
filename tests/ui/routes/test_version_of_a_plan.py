"""A plan's page says which Rehome has planned it, beside the one that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from rehome.ledger.stores import plans
from rehome.version import REHOME_VERSION
from tests.ui.site import Site

if TYPE_CHECKING:
    from fastapi.testclient import TestClient


def test_it_is_the_version_that_has_planned_not_the_one_that_shows(
    site: Site, client: Callable[[str], TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(plans, "REHOME_VERSION", "0.0.9")
        site.plan("p1")
    shown = client("viewer").get("/plans/p1").text
    assert "planned by Rehome 0.0.9" in shown
    assert f"Rehome {REHOME_VERSION}" in shown


def test_of_a_plan_before_versions_were_kept_nothing_is_said(
    site: Site, client: Callable[[str], TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(plans, "REHOME_VERSION", None)
        site.plan("p1")
    assert "planned by Rehome" not in client("viewer").get("/plans/p1").text
