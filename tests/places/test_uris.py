"""What is read and written is of a scheme that was chosen, and below the warehouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehome.directory import Directory
from rehome.errors import InvalidRequestError, RehomeError
from rehome.places.uris import OTHER_SCHEMES, UriNotAllowedError, is_below, refuse_other_scheme
from rehome.settings import Settings
from rehome.warehouse import Warehouse


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:1/snapshot",
        "HTTPS://example.org/x",
        "ftp://example.org/x",
        "simplecache::http://127.0.0.1:1/x",
        "zip://x::file:///tmp/y.zip",
        "file::http://127.0.0.1:1/x",
        "file:///x::http://127.0.0.1:1/y",
        "memory://x::https://127.0.0.1:1/y",
        "github://owner:repo@main/x",
        "data://text",
        "reference://x",
        "local:///etc",
        "az://container/x",
        "://x",
    ],
)
def test_a_uri_of_another_scheme_is_not_even_looked_at(uri: str) -> None:
    for read in (refuse_other_scheme, Directory, Warehouse):
        with pytest.raises(UriNotAllowedError, match="neither read nor written"):
            read(uri)


@pytest.mark.parametrize(
    "uri", ["/tmp/x", "file:///tmp/x", "s3://b/x", "s3a://b/x", "gs://b", "abfss://c@a/x",
            "hdfs://name:8020/x", "memory://x", "S3://b"],
)  # fmt: skip
def test_a_warehouse_may_be_on_a_disk_or_a_store(uri: str) -> None:
    refuse_other_scheme(uri)


def test_other_schemes_are_those_that_a_person_has_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OTHER_SCHEMES, "az, OSS")
    assert Settings.load().other_uri_schemes == "az, OSS"
    for uri in ("az://container/x", "oss://bucket/x"):
        refuse_other_scheme(uri)
    with pytest.raises(UriNotAllowedError):
        refuse_other_scheme("http://example.org")
    monkeypatch.setenv(OTHER_SCHEMES, "az://container")
    with pytest.raises(InvalidRequestError, match="other_uri_schemes='az://container'"):
        Settings.load()


@pytest.mark.parametrize(
    ("uri", "root", "below"),
    [
        ("file:///w/plans/p", "file:///w", True),
        ("/w/plans/p", "file:///w/", True),
        ("s3a://b/w/p", "s3://b/w", True),
        ("memory://w/p", "memory://w", True),
        ("file:///w", "file:///w", False),
        ("file:///wider/p", "file:///w", False),
        ("file:///w/../etc/p", "file:///w", False),
        ("file:///w/./p", "file:///w", False),
        ("file:///w//p", "file:///w", False),
        ("s3://other/w/p", "s3://b/w", False),
        ("http://b/w/p", "s3://b/w", False),
        ("hdfs://evil/w/p", "hdfs://name/w", False),
        ("../w/p", "file:///w", False),
    ],
)
def test_what_lies_below_is_told_by_the_text(uri: str, root: str, below: bool) -> None:
    assert is_below(uri, root) is below


def test_a_plan_outside_of_the_warehouse_is_not_read(tmp_path: Path) -> None:
    warehouse = Warehouse((tmp_path / "new").as_uri())
    there = warehouse.plan("p1").uri
    assert warehouse.plan_at(there).uri == there
    for uri in ((tmp_path / "old/plans/p1").as_uri(), f"{there}/../../../x", "http://h/plans/p1"):
        with pytest.raises(RehomeError, match="If the warehouse was moved"):
            warehouse.plan_at(uri)


@pytest.mark.parametrize(
    "name", ["../x", "cluster=a", "cluster=../taken_at=1Z", "cluster=a/taken_at=x/../..", "", "/x"]
)
def test_a_snapshot_is_read_by_a_name_that_one_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(RehomeError, match="the name of no snapshot"):
        Warehouse(tmp_path.as_uri()).snapshot_uri(name)
