"""What makes a plan a proven one: both gates, their results written down, and refusals."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehome.clusters.clusters_file import clusters_of
from rehome.clusters.filled_requests import request_by
from rehome.directory import open_uri
from rehome.domain.plan.kafka_json import KafkaFiles
from rehome.domain.text import json_in, refuse_large
from rehome.errors import InvalidRequestError, PickledAsRaised, RehomeError
from rehome.places.uris import refuse_other_scheme
from rehome.quality.engine.results import GateResult, describe, refusal
from rehome.quality.gates import Evidence, check_evidence, check_snapshot
from rehome.quality.history import check_history
from rehome.quality.published.project import SITE, Run, publish
from rehome.quality.snapshot.tables import Concerned
from rehome.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rehome.cluster.snapshot.model import Snapshot
    from rehome.domain.plan.plan import Plan
    from rehome.domain.request.request import ReassignmentRequest
    from rehome.load_history.known_rates import LoadHistory
    from rehome.warehouse import PlanDirectory

EXIT_CODES = {"crashed": 1, "invalid_request": 2, "gate_refused": 3, "expectation_crashed": 4}
_CAUSED = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
_SHOWN = 2000
"""Characters of a crash's own words."""


class RefusedError(PickledAsRaised, Exception):
    """There is no plan; ``kind`` is a key of :data:`EXIT_CODES`.

    :param details: what the message says, as a list: problems, or names of expectations.
    """

    def __init__(self, kind: str, message: str, details: Sequence[str]) -> None:
        self.kind = kind
        self.details = list(details)
        super().__init__(message)

    @classmethod
    def invalid(cls, error: RehomeError) -> RefusedError:
        """The refusal of a request that cannot be carried out, or of input that is not there."""
        problems = error.problems if isinstance(error, InvalidRequestError) else (error.what,)
        return cls("invalid_request", str(error), problems)

    @classmethod
    def of_crash(cls, error: Exception) -> RefusedError:
        """What is known of an error that nobody has foreseen: its first line, and Java's causes."""
        first = next(iter(str(error).strip().splitlines()), "")
        causes = list(dict.fromkeys(_CAUSED.findall(str(error))))
        said = " Caused by: ".join([f"{type(error).__name__}: {first}", *causes[-1:]])
        return cls("crashed", said[:_SHOWN], causes)

    def to_json(self) -> dict[str, Any]:
        """``failure.json``."""
        return {"kind": self.kind, "message": str(self), "details": self.details}


@dataclass(frozen=True, slots=True)
class GateThresholds:
    """What the gates hold against a snapshot and a plan."""

    max_snapshot_age_s: float = 3600.0
    min_free_disk_fraction: float = 0.05


@dataclass
class Proof:
    """The gates of one plan; results go to ``gates.json`` as they come.

    :param out: the plan's directory.
    :param quality: URI of the project of Great Expectations that keeps the results of all plans;
        "" = none does.
    """

    spark: SparkSession
    out: PlanDirectory
    request: ReassignmentRequest
    limits: GateThresholds
    quality: str = ""
    _results: list[GateResult] = field(default_factory=list)

    def of_snapshot(self, uri: str, snapshot: Snapshot) -> None:
        """Is the snapshot good enough to plan on?

        :raises RefusedError: it is not.
        """
        self.record(self.judge_snapshot(uri, snapshot))

    def judge_snapshot(self, uri: str, snapshot: Snapshot) -> GateResult:
        """What the gate says of the snapshot; not written down."""
        concerned = Concerned.by(self.request)
        return check_snapshot(
            self.spark,
            uri,
            snapshot,
            datetime.now(UTC),
            max_age_s=self.limits.max_snapshot_age_s,
            additional=self.request.additional,
            balanced=concerned.balanced,
        )

    def of_history(self, history: LoadHistory) -> None:
        """Is the history enough to plan by? What it lacks is reported, and the plan does
        without.
        """
        self.record(check_history(self.spark, history))

    def of_plan(self, evidence: Evidence) -> None:
        """Does the plan keep every hard rule?

        :raises RefusedError: it does not.
        """
        self.record(check_evidence(self.spark, evidence))

    def publish(self) -> None:
        """Write the Data Docs of what was judged, while Spark runs. Where that fails, the gates'
        results stand all the same, in ``gates.json``.
        """
        if not self._results:
            return
        run = Run(self.out.uri.rpartition("/")[2], datetime.now(UTC))
        try:
            publish(run, self._results, self.out.uri, self.quality)
        except Exception as error:  # noqa: BLE001 - whatever it is, the verdict does not depend on it
            print(
                f"The Data Docs of the gates could not be written: {error!r}. The gates' results "
                f"are in {self.out.uri}/gates.json.",
                file=sys.stderr,
            )
        else:
            print(f"Data Docs of the gates: {self.out.uri}/{SITE}/index.html")

    def record(self, result: GateResult) -> None:
        """Write a gate's result down.

        :raises RefusedError: it did not pass, and has to.
        """
        self._results.append(result)
        self.out.write_json("gates.json", [gate.to_json() for gate in self._results])
        print(describe([result]))
        if result.binding and not result.passed:
            kind = "expectation_crashed" if result.crashed else "gate_refused"
            raise RefusedError(
                kind,
                f"The gate on the {result.gate} did not pass:\n{refusal(result)}",
                [outcome.name for outcome in (*result.crashed, *result.failed)],
            )


def evidence_of(
    snapshot: Snapshot,
    plan: Plan,
    request: ReassignmentRequest,
    limits: GateThresholds,
    files: KafkaFiles,
) -> Evidence:
    """What the gate judges a plan by, among it the very text of Kafka's files."""
    return Evidence.of(
        snapshot,
        plan,
        request,
        reassignment=files.reassignment,
        rollback=files.rollback,
        digests=files.digests(),
        min_free_disk_fraction=limits.min_free_disk_fraction,
    )


def read_request(path: str, clusters_file: str = "") -> ReassignmentRequest:
    """The request in a file. Its window may close meanwhile: the plan is for the next one then.

    :param clusters_file: path of the clusters file that says more of its cluster; "" = none does.
    :raises InvalidRequestError: lists every problem.
    """
    return request_of(read_parameters(path), clusters_file)


def request_of(content: Mapping[str, Any], clusters_file: str = "") -> ReassignmentRequest:
    """The same of parameters that have been read."""
    path = str(Path(clusters_file).absolute()) if clusters_file else ""
    file = clusters_of(Settings(clusters_file=path))
    return request_by(content, file, now=datetime.min.replace(tzinfo=UTC))


def read_parameters(path: str) -> Mapping[str, Any]:
    """The JSON object in a file.

    :raises InvalidRequestError: it cannot be read, or is something else.
    """
    refuse_other_scheme(path)
    try:
        fs, name = open_uri(path)
        refuse_large(fs.size(name) or 0)
        with fs.open(name, "r", encoding="utf-8") as file:
            content = json_in(file.read())
    except (OSError, ValueError) as error:
        raise InvalidRequestError([f"The request {path} cannot be read: {error}."]) from None
    if not isinstance(content, dict):
        raise InvalidRequestError([f"The request {path} is not a JSON object."])
    return content
