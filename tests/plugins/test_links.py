"""Addresses of the page: behind Airflow's path prefix, where it has one."""

from __future__ import annotations

import pytest

from rehome import links


@pytest.mark.parametrize(
    ("base", "mounted", "page"),
    [
        ("http://h:8080", "/rehome", "http://h:8080/plugin/reassignments/rehome/plans/p1"),
        (
            "https://h/team/airflow/",
            "/team/airflow/rehome",
            "https://h/team/airflow/plugin/reassignments/team/airflow/rehome/plans/p1",
        ),
    ],
)
def test_airflows_ui_is_given_the_addresses_that_browsers_ask_for(
    monkeypatch: pytest.MonkeyPatch, base: str, mounted: str, page: str
) -> None:
    """It shows what follows its own address of the page in a frame, as it is."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base)
    assert links.page_mount() == mounted
    assert links.page_of_plan("p1") == page
    assert links.flow_picture("reassign_partitions").endswith(
        f"]({mounted}/flows/reassign_partitions.svg)"
    )
