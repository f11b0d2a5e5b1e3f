"""Files below one URI, wherever fsspec reaches: text, JSON and Parquet."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq

from rehome.errors import RehomeError
from rehome.places.stores import EXTRAS, fsspec_options
from rehome.places.uris import refuse_other_scheme, scheme_of

ROWS_TOGETHER = 1 << 17
"""Rows of a table that one task of Spark reads at least: more of them, and cores are idle."""


class StoreDriverError(RehomeError):
    """What fsspec opens a store with is not installed."""


def open_uri(uri: str) -> tuple[Any, str]:
    """The file system of a URI that was allowed, and the path in it.

    :raises StoreDriverError: its driver is missing.
    """
    scheme = scheme_of(uri)
    try:
        fs, path = fsspec.core.url_to_fs(uri, **fsspec_options(scheme))
    except ImportError as error:
        extra = EXTRAS.get(scheme)
        raise StoreDriverError(
            f"{uri} cannot be opened: {error}",
            next_step=f"Install {f'rehome[{extra}]' if extra else 'the driver'} on every machine "
            "of Airflow.",
        ) from error
    return fs, path


class Directory:
    """Files below one URI.

    :raises UriNotAllowedError: it is of another scheme than the warehouse may be.
    :raises StoreDriverError: fsspec's driver for it is missing.
    """

    def __init__(self, uri: str) -> None:
        refuse_other_scheme(uri)
        self.uri = uri if uri.endswith("://") else uri.rstrip("/")
        self.fs, self.path = open_uri(self.uri)

    def exists(self, name: str) -> bool:
        """Whether the file is there."""
        return bool(self.fs.exists(f"{self.path}/{name}"))

    def write_text(self, name: str, text: str | Iterable[str]) -> str:
        """Write a file, whole or piece by piece, and return its URI.

        A reader never sees half of it on a local disk.
        """
        self.fs.makedirs(self.path, exist_ok=True)
        target, part = f"{self.path}/{name}", f"{self.path}/.{name}.part"
        with self.fs.open(part, "w", encoding="utf-8") as file:
            file.writelines([text] if isinstance(text, str) else text)
        self.fs.mv(part, target)
        return f"{self.uri}/{name}"

    def read_text(self, name: str) -> str:
        """The file's text.

        :raises RehomeError: when it is not there.
        """
        try:
            with self.fs.open(f"{self.path}/{name}", "r", encoding="utf-8") as file:
                return str(file.read())
        except FileNotFoundError:
            raise self._missing(name) from None

    def digest(self, name: str) -> str:
        """SHA-256 (hex) of a file's bytes.

        :raises RehomeError: it is not there.
        """
        try:
            with self.fs.open(f"{self.path}/{name}", "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            raise self._missing(name) from None

    def write_json(self, name: str, content: Any) -> str:
        """Write a JSON file and return its URI."""
        return self.write_text(name, json.dumps(content, indent=2) + "\n")

    def read_json(self, name: str) -> Any:
        """The parsed file."""
        return json.loads(self.read_text(name))

    def remove(self, name: str) -> None:
        """Delete the file if it is there."""
        if self.exists(name):
            self.fs.rm(f"{self.path}/{name}")

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write a Parquet file. A reader never sees half of it on a local disk."""
        self.fs.makedirs(self.path, exist_ok=True)
        target, part = f"{self.path}/{name}", f"{self.path}/.{name}.part"
        with self.fs.open(part, "wb") as file:
            pq.write_table(table, file, row_group_size=ROWS_TOGETHER)
        self.fs.mv(part, target)

    def read_table(self, name: str, columns: list[str] | None = None) -> pa.Table:
        """Read a Parquet file, or a directory of them as Spark writes it.

        :param columns: those to read; None = all.
        :raises RehomeError: when it is not there, or is no Parquet.
        """
        path = f"{self.path}/{name}"
        try:
            if self.fs.isfile(path):  # what reads directories loads pandas
                with pq.ParquetFile(path, filesystem=self.fs, pre_buffer=True) as file:
                    if lacking := {*(columns or ())} - {*file.schema_arrow.names}:
                        raise pa.ArrowInvalid(f"it has no column {', '.join(sorted(lacking))}")
                    return file.read(columns)
            return pq.read_table(path, columns=columns, filesystem=self.fs, partitioning=None)
        except FileNotFoundError:
            raise self._missing(name) from None
        except pa.ArrowInvalid as error:
            raise self._damage_error(name, error) from None

    def count_rows(self, name: str) -> int:
        """How many rows a Parquet file, or a directory of them, has; only its ends are read.

        :raises RehomeError: when it is not there, or is no Parquet.
        """
        from pyarrow.dataset import dataset

        try:
            table = dataset(f"{self.path}/{name}", format="parquet", filesystem=self.fs)
            return int(table.count_rows())
        except FileNotFoundError:
            raise self._missing(name) from None
        except pa.ArrowInvalid as error:
            raise self._damage_error(name, error) from None

    def _damage_error(self, name: str, error: pa.ArrowInvalid) -> RehomeError:
        return RehomeError(
            f"{self.uri}/{name} cannot be read: {error}",
            next_step="The file was damaged after it was written. Take a new snapshot, or make a "
            "new "
            "plan, by a new run.",
        )

    def _missing(self, name: str) -> RehomeError:
        return RehomeError(
            f"{self.uri}/{name} does not exist",
            next_step="Check the id, and that this is the warehouse it was written to.",
        )
