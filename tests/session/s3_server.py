"""An S3 server in this process: moto's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import boto3
import pytest
from moto.server import ThreadedMotoServer

from rehome.places.stores import StoreLogin, log_in, s3_login

KEY, SECRET = "AKIAOFTESTS", "s3-secret-word"
REGION = "eu-central-1"


@dataclass(frozen=True)
class S3:
    """How to reach the server, and as whom."""

    endpoint: str

    def new_warehouse(self) -> str:
        """URI of a warehouse in a bucket of its own."""
        bucket = f"bucket-{uuid4().hex[:8]}"
        self.client().create_bucket(
            Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        return f"s3://{bucket}/rehome"

    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
        )

    def texts(self, warehouse: str) -> dict[str, str]:
        """Every file of a warehouse, by its key in the bucket."""
        bucket, client = warehouse.split("/")[2], self.client()
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        return {
            key: client.get_object(Bucket=bucket, Key=key)["Body"].read().decode("latin-1")
            for key in keys
        }

    def login(self) -> StoreLogin:
        return s3_login(KEY, SECRET, region=REGION, endpoint=self.endpoint)

    @contextmanager
    def logged_in(self) -> Iterator[None]:
        """Stores are the server's meanwhile, for this process."""
        log_in(self.login())
        try:
            yield
        finally:
            log_in(None)

    def airflow_connection(self) -> str:
        """As Airflow's environment has connections of type aws."""
        extra = {"region_name": REGION, "endpoint_url": self.endpoint}
        return json.dumps({"conn_type": "aws", "login": KEY, "password": SECRET, "extra": extra})


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """A server for the session."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield S3(f"http://{host}:{port}")
    server.stop()
