"""A plan's files as the page reads them: there, not there yet, or out of reach."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cached_property
from json import loads as parse_json
from types import MappingProxyType
from typing import Any, TypeVar

from rehome.account.evidence import GATES, FilesRead, files_read
from rehome.domain.plan.kafka_json import REASSIGNMENT_FILE, ROLLBACK_FILE
from rehome.domain.plan.summary import PlanSummary, summary_from_json
from rehome.errors import RehomeError
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.reporting.plan_files import EXPORT, PLAN_FILES
from rehome.warehouse import PlanDirectory

Found = TypeVar("Found")
SUMMARY = "summary.json"
"""The plan in numbers."""
SERVED = {name: what for name, what in PLAN_FILES.items() if name.endswith((".json", ".html"))}
"""Files that people may fetch: name → what is in it."""


class PlanFiles:
    """What a plan's directory held when it was read; make a new one to read it anew.

    :param digests: name of a file → SHA-256 of what the ledger knows to have been written. If such
        a file holds anything else, it is not shown: others may write to the warehouse.
    :param ended: whether the plan has: until then, nothing looks for its proofs in vain.
    :ivar problem: why the directory could not be read; "" = it could, as far as it was.
    """

    def __init__(
        self,
        plan_dir: str,
        digests: Mapping[str, str] = MappingProxyType({}),
        *,
        ended: bool = False,
    ) -> None:
        self.uri = plan_dir
        self._ended = ended
        self._digests = digests
        self.problem = ""

    @cached_property
    def _directory(self) -> PlanDirectory | None:
        try:
            return PlanDirectory(self.uri)
        except (OSError, ValueError, ImportError, RehomeError) as error:  # no scheme, no driver
            self.problem = f"{self.uri} cannot be read: {error}"
            return None

    def json(self, name: str) -> Any:
        """The parsed file; None where there is none, it is out of reach, or it was changed."""
        return self._read(name, parse_json)

    def text(self, name: str) -> str | None:
        """The file; None where there is none, it is out of reach, or it was changed."""
        return self._read(name, str)

    def _read(self, name: str, parse: Callable[[str], Found]) -> Found | None:
        directory = self._directory
        try:
            if directory is None or not directory.exists(name):
                return None
            text = directory.read_text(name)
            digest = self._expected_digest(name)
            if digest not in (None, hashlib.sha256(text.encode()).hexdigest()):
                self.problem = (
                    f"{self.uri}/{name} is not shown: it is not what the plan's task has written"
                )
                return None
            return parse(text)
        except (OSError, RehomeError) as error:
            self.problem = f"{self.uri}/{name} cannot be read: {error}"
        except ValueError as error:
            self.problem = f"{self.uri}/{name} is damaged: {error}"
        return None

    def _expected_digest(self, name: str) -> str | None:
        """SHA-256 of what a file has to hold; None = it is not known.

        Of Kafka's own files, which people may hand to its tools, the summary has it, which the
        ledger knows.
        """
        if name not in (REASSIGNMENT_FILE, ROLLBACK_FILE) or SUMMARY not in self._digests:
            return self._digests.get(name)
        return "" if self.summary is None else self.summary.files.get(name)

    @cached_property
    def summary(self) -> PlanSummary | None:
        """The plan in numbers."""
        content = self.json(SUMMARY)
        if content is None:
            return None
        content.pop("allow_replication_factor_change", None)
        return summary_from_json(content)

    @cached_property
    def gates(self) -> tuple[Mapping[str, Any], ...]:
        """What its gates have found; also of a run that has made no plan."""
        return tuple(self.json(GATES) or ())

    @cached_property
    def read(self) -> FilesRead:
        """What the plan's account goes by."""
        return files_read(self.json, self.summary, ended=self._ended)

    @cached_property
    def exported(self) -> tuple[str, ...]:
        """Names of the files for Kafka's own tools, in the folder export."""
        return tuple((self.json("export.json") or {}).get("files", ()))

    def exported_text(self, name: str) -> str | None:
        """One of them; None where there is none, it is out of reach, or it was changed."""
        return self.text(f"{EXPORT}/{name}") if name in self.exported else None

    @cached_property
    def there(self) -> tuple[str, ...]:
        """Names of the files that people may fetch now."""
        directory = self._directory
        try:
            return tuple(
                name for name in SERVED if directory is not None and directory.exists(name)
            )
        except OSError as error:
            self.problem = f"{self.uri} cannot be read: {error}"
            return ()


def files_of(ledger: Ledger, record: PlanRecord) -> PlanFiles:
    """The files of a plan, those that the ledger knows only as they were written."""
    digests = ledger.known_files(record.plan_id)
    return PlanFiles(record.plan_dir, digests, ended=record.ended_at is not None)
