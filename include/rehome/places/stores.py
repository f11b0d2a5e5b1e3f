"""Object stores: how Python and Spark open the same URI, and with which credentials.

Credentials are those of the machine (its role, environment or files) or of a :class:`StoreLogin`. A
login is in memory, and in the environment of a job's driver; never in a URI, a command or a plan.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LOGIN = "REHOME_STORE_SECRET"
"""Hands a login over to a job, in its environment. Spark redacts what has such a name."""
EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "abfss": "abfss"}
"""Scheme → the extra of the package that brings fsspec's part."""
_S3A = "org.apache.hadoop.fs.s3a"
_ABFS = "org.apache.hadoop.fs.azurebfs"
_GS = "org.apache.hadoop.fs.gs"
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


@dataclass(frozen=True, slots=True)
class StoreLogin:
    """Credentials and addresses of one store.

    :param scheme: s3, gs or abfss.
    :param options: as fsspec takes them; ``hadoop``: as Spark's file systems do.
    """

    scheme: str
    options: Mapping[str, Any] = field(repr=False)
    hadoop: Mapping[str, str] = field(repr=False)

    def to_json(self) -> str:
        """For :data:`LOGIN`."""
        return json.dumps([self.scheme, dict(self.options), dict(self.hadoop)])

    @classmethod
    def from_json(cls, text: str) -> StoreLogin:
        """What :meth:`to_json` has written."""
        return cls(*json.loads(text))


class _Login:
    """Of this process; None = the one that the environment hands over, if any."""

    current: StoreLogin | None = None


def log_in(login: StoreLogin | None) -> None:
    """Use these credentials from now on in this process; None = the machine's own."""
    _Login.current = login


def current_login() -> StoreLogin | None:
    """The credentials that stores are opened with; None = the machine's own."""
    if _Login.current is None and LOGIN in os.environ:
        return StoreLogin.from_json(os.environ[LOGIN])
    return _Login.current


def fsspec_options(scheme: str) -> dict[str, Any]:
    """How fsspec is to open URIs of a scheme.

    Listings are never kept: a process that lives long would not see what others write.
    """
    if scheme not in EXTRAS:
        return {}
    login = current_login()
    options: dict[str, Any] = {"use_listings_cache": False}
    if scheme == "abfss":
        options["anon"] = False  # adlfs would not look for the machine's identity
    if login is not None and login.scheme == EXTRAS[scheme]:
        options |= login.options
    return options


def hadoop_settings() -> dict[str, str]:
    """How Spark's file systems are to open URIs of every scheme; all but credentials are Spark's
    defaults of nothing, so those of schemes that are not used do no harm.
    """
    settings = {
        "fs.s3.impl": f"{_S3A}.S3AFileSystem",
        "fs.AbstractFileSystem.s3.impl": f"{_S3A}.S3A",
        # The chain of AWS's own tools, as Python's part goes by: Hadoop's is a shorter one.
        "fs.s3a.aws.credentials.provider": (
            "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
        ),
        "fs.gs.impl": f"{_GS}.GoogleHadoopFileSystem",
        "fs.AbstractFileSystem.gs.impl": f"{_GS}.Gs",
    }
    endpoint = _of_environment(_ENDPOINTS)
    settings |= _s3_address(endpoint, _of_environment(_REGIONS))
    login = current_login()
    return settings | (dict(login.hadoop) if login else {})


def s3_login(
    key: str, secret: str, *, token: str = "", region: str = "", endpoint: str = ""
) -> StoreLogin:
    """S3, and what speaks like it.

    :param key: of the access key and ``secret`` its secret; "" = the machine's own credentials.
    :param endpoint: URL; "" = Amazon's.
    """
    client = {"region_name": region, "endpoint_url": endpoint}
    options: dict[str, Any] = {
        "client_kwargs": {name: value for name, value in client.items() if value}
    }
    hadoop = _s3_address(endpoint, region)
    if key:
        options |= {"key": key, "secret": secret, **({"token": token} if token else {})}
        hadoop |= {
            "fs.s3a.access.key": key,
            "fs.s3a.secret.key": secret,
            "fs.s3a.aws.credentials.provider": (
                f"{_S3A}.TemporaryAWSCredentialsProvider"
                if token
                else f"{_S3A}.SimpleAWSCredentialsProvider"
            ),
            **({"fs.s3a.session.token": token} if token else {}),
        }
    return StoreLogin("s3", options, hadoop)


def gs_login(key_file: str) -> StoreLogin:
    """Google Cloud Storage.

    :param key_file: a service account's key, a JSON file that every machine has.
    """
    hadoop = {
        "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
        "fs.gs.auth.service.account.json.keyfile": key_file,
    }
    return StoreLogin("gs", {"token": key_file}, hadoop)


def abfss_login(tenant: str, client_id: str, client_secret: str) -> StoreLogin:
    """Azure Data Lake Storage, by a service principal."""
    options = {"tenant_id": tenant, "client_id": client_id, "client_secret": client_secret}
    hadoop = {
        "fs.azure.account.auth.type": "OAuth",
        "fs.azure.account.oauth.provider.type": f"{_ABFS}.oauth2.ClientCredsTokenProvider",
        "fs.azure.account.oauth2.client.endpoint": (
            f"https://login.microsoftonline.com/{tenant}/oauth2/token"
        ),
        "fs.azure.account.oauth2.client.id": client_id,
        "fs.azure.account.oauth2.client.secret": client_secret,
    }
    return StoreLogin("abfss", options, hadoop)


def _s3_address(endpoint: str, region: str) -> dict[str, str]:
    settings = {"fs.s3a.endpoint.region": region} if region else {}
    if endpoint:  # of others than Amazon: buckets have no host names of their own there
        settings |= {
            "fs.s3a.endpoint": endpoint,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.endpoint.region": region or "us-east-1",
        }
    return settings


def _of_environment(names: tuple[str, ...]) -> str:
    return next((os.environ[name] for name in names if os.environ.get(name)), "")
