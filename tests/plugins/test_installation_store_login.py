"""Airflow's connections as credentials of the warehouse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rehome import installation
from rehome.errors import InvalidRequestError
from rehome.installation import store_login
from rehome.places.stores import StoreLogin, abfss_login, current_login, gs_login, log_in, s3_login

SECRET = "s3-secret-word"


def connection(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_STORE", json.dumps(fields))


@pytest.mark.parametrize(
    ("fields", "login"),
    [
        (
            {"conn_type": "aws", "login": "k", "password": SECRET},
            s3_login("k", SECRET),
        ),
        (
            {
                "conn_type": "aws",
                "login": "k",
                "password": SECRET,
                "extra": {
                    "region_name": "eu-west-1",
                    "aws_session_token": "t",
                    "endpoint_url": "http://other",
                    "service_config": {"s3": {"endpoint_url": "http://minio:9000"}},
                },
            },
            s3_login("k", SECRET, token="t", region="eu-west-1", endpoint="http://minio:9000"),
        ),
        (
            {"conn_type": "google_cloud_platform", "extra": {"key_path": "/etc/gs.json"}},
            gs_login("/etc/gs.json"),
        ),
        (
            {
                "conn_type": "wasb",
                "login": "client",
                "password": SECRET,
                "extra": {"tenant_id": "tenant"},
            },
            abfss_login("tenant", "client", SECRET),
        ),
    ],
)
def test_fields_are_those_of_airflows_own_providers(
    fields: dict[str, Any], login: StoreLogin, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, **fields)
    assert store_login("store", login.scheme) == login
    connection(monkeypatch, **{**fields, "conn_type": "generic"})
    assert store_login("store", login.scheme) == login
    assert store_login("store", "file") is None


@pytest.mark.parametrize(
    ("scheme", "fields", "said"),
    [
        ("s3", {"conn_type": "aws", "extra": {"role_arn": "arn:x"}}, "names a role to take on"),
        ("gs", {"conn_type": "google_cloud_platform"}, "has no key_path"),
        ("abfss", {"conn_type": "wasb", "login": "client"}, "needs a service principal"),
        ("s3a", {"conn_type": "http", "password": SECRET}, "in s3 takes aws or generic"),
    ],
)
def test_what_is_missing_is_said(
    scheme: str, fields: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection(monkeypatch, **fields)
    with pytest.raises(InvalidRequestError, match=said) as raised:
        store_login("store", scheme)
    assert SECRET not in str(raised.value)


def test_the_settings_open_the_warehouse_with_it_and_without_it_they_stand(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    connection(monkeypatch, conn_type="aws", login="k", password=SECRET)
    monkeypatch.setenv("REHOME_WAREHOUSE", "s3://bucket/rehome")
    try:
        monkeypatch.setenv("REHOME_WAREHOUSE_CONNECTION", "store")
        installation.settings()
        assert current_login() == s3_login("k", SECRET)
        monkeypatch.setenv("REHOME_WAREHOUSE_CONNECTION", "no_such")
        assert installation.settings().warehouse_connection == "no_such"
        assert "There is no Airflow connection 'no_such'" in caplog.text
        monkeypatch.delenv("REHOME_WAREHOUSE_CONNECTION")
        installation.settings()
        assert current_login() is None
    finally:
        log_in(None)
    assert SECRET not in caplog.text
