"""Object stores: the same URI and credentials for Python and Spark, and shown nowhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rehome.directory import Directory, StoreDriverError
from rehome.places import stores
from rehome.places.stores import (
    LOGIN,
    StoreLogin,
    abfss_login,
    current_login,
    fsspec_options,
    gs_login,
    hadoop_settings,
    log_in,
    s3_login,
)
from rehome.quality.published.project import keep_newest, put
from tests.session.s3_server import KEY, S3, SECRET

PROVIDER = "fs.s3a.aws.credentials.provider"


@pytest.fixture(autouse=True)
def the_machines_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    yield
    log_in(None)


def test_without_a_login_both_sides_look_for_the_machines_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert fsspec_options("s3") == {"use_listings_cache": False}
    assert fsspec_options("abfss")["anon"] is False
    assert fsspec_options("file") == {}
    settings = hadoop_settings()
    assert settings["fs.s3.impl"] == "org.apache.hadoop.fs.s3a.S3AFileSystem"
    assert settings[PROVIDER].endswith("DefaultCredentialsProvider")
    assert "fs.s3a.endpoint" not in settings
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    settings = hadoop_settings()
    assert settings["fs.s3a.endpoint"] == "http://minio:9000"
    assert settings["fs.s3a.path.style.access"] == "true"
    assert settings["fs.s3a.endpoint.region"] == "eu-west-1"


@pytest.mark.parametrize(
    ("login", "options", "hadoop"),
    [
        (
            s3_login("k", SECRET, region="eu-west-1"),
            {"key": "k", "secret": SECRET, "client_kwargs": {"region_name": "eu-west-1"}},
            {
                "fs.s3a.access.key": "k",
                "fs.s3a.secret.key": SECRET,
                PROVIDER: "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
            },
        ),
        (
            s3_login("k", SECRET, token="of a session"),
            {"token": "of a session"},
            {
                "fs.s3a.session.token": "of a session",
                PROVIDER: "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
            },
        ),
        (
            s3_login("", "", endpoint="http://minio:9000"),
            {"client_kwargs": {"endpoint_url": "http://minio:9000"}},
            {"fs.s3a.endpoint": "http://minio:9000", "fs.s3a.endpoint.region": "us-east-1"},
        ),
        (
            gs_login("/etc/gs.json"),
            {"token": "/etc/gs.json"},
            {"fs.gs.auth.service.account.json.keyfile": "/etc/gs.json"},
        ),
        (
            abfss_login("tenant", "client", SECRET),
            {"tenant_id": "tenant", "client_id": "client", "client_secret": SECRET},
            {
                "fs.azure.account.oauth2.client.secret": SECRET,
                "fs.azure.account.oauth2.client.endpoint": (
                    "https://login.microsoftonline.com/tenant/oauth2/token"
                ),
            },
        ),
    ],
)
def test_a_login_reaches_both_sides_and_shows_nowhere(
    login: StoreLogin, options: dict[str, object], hadoop: dict[str, str]
) -> None:
    log_in(login)
    assert options.items() <= fsspec_options(login.scheme).items()
    assert hadoop.items() <= hadoop_settings().items()
    assert SECRET not in repr(login)
    others = {"s3", "gs", "abfss"} - {login.scheme}
    assert not [name for name in others if options.items() <= fsspec_options(name).items()]


def test_a_job_gets_the_login_by_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    login = s3_login("k", SECRET, endpoint="http://minio:9000")
    monkeypatch.setenv(LOGIN, login.to_json())
    assert current_login() == login
    assert fsspec_options("s3a")["secret"] == SECRET


def test_a_missing_driver_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    with pytest.raises(StoreDriverError, match=r"Install rehome\[s3\] on every machine"):
        Directory("s3://bucket/rehome")


@pytest.mark.slow
def test_what_others_write_is_seen_at_once_and_folders_are_kept_or_removed(s3: S3) -> None:
    with s3.logged_in():
        uri = s3.new_warehouse()
        assert stores.fsspec_options("s3")["key"] == KEY
        directory = Directory(uri)
        assert not directory.exists("a.txt")
        assert directory.fs.glob(f"{directory.path}/*") == []
        bucket = uri.split("/")[2]
        s3.client().put_object(Bucket=bucket, Key="rehome/a.txt", Body=b"of another process")
        assert directory.exists("a.txt")
        assert len(directory.fs.glob(f"{directory.path}/*")) == 1
        assert directory.read_text("a.txt") == "of another process"
        put({f"runs/s/{n}/t/r.json": b"{}" for n in range(5)}, uri)
        keep_newest(uri, "runs/s/*", 2)
        left = directory.fs.glob(f"{directory.path}/runs/s/*")
        assert len(left) == 2, left
