"""The clusters file: one YAML file with the settings of each cluster.

    clusters:
      berlin:
        connection: kafka_berlin
        policy: {approval: true, largest_throttle: 50000000}
        windows: [{cron: "0 1 * * *", hours: 4, timezone: Europe/Berlin}]
        targets: {tolerance: 0.05, exclude_topics: ["audit-*"]}
        settings: {max_partitions_in_flight: 50}

What is not there holds as without the file. See docs/howto/clusters-file.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from rehome.clusters.own_settings import settings_problems
from rehome.clusters.watch_rules import WatchRules
from rehome.clusters.yaml_text import parse_yaml
from rehome.domain.request.limits import (
    BrokerCaps,
    BrokerSet,
    broker_sets_to_json,
    caps_to_json,
    read_broker_sets,
    read_caps,
)
from rehome.domain.request.request import upgraded_params
from rehome.domain.request.targets import target_problems
from rehome.domain.request.validation import ProblemsError, every_problem
from rehome.errors import InvalidRequestError
from rehome.execution.access.connection_policy import ConnectionPolicy
from rehome.execution.access.open_windows import CronWindow, cron_problem, window_from_json
from rehome.execution.access.policy_refusals import PolicyPlace
from rehome.field_descriptions import Shown, ValueText
from rehome.packaging import PROJECT
from rehome.settings import Settings

_NEXT_STEP = "Correct the clusters file, which the setting clusters_file names."
NAME = r"^[a-z0-9]+([_.-][a-z0-9]+)*$"
"""Of a cluster: it becomes a part of the ids of DAGs."""


class ClustersFileError(InvalidRequestError):
    """The clusters file cannot be used; names every problem.

    :param path: of the file; "" = it is not known here.
    """

    def __init__(self, problems: Sequence[str], path: str = "") -> None:
        super().__init__(problems, next_step=_NEXT_STEP)
        self.what = f"The clusters file {path}".rstrip() + " cannot be used:\n"
        self.what += "\n".join(f"- {problem}" for problem in problems)
        self.state_left = ""
        self.args = (self.what,)

    def __str__(self) -> str:
        return f"{self.what}\n{self.next_step}"


def _policy(value: Any, info: ValidationInfo) -> ConnectionPolicy:
    connection = str(info.data.get("connection", ""))
    try:
        return ConnectionPolicy.parse(value, connection, PolicyPlace.FILE)
    except InvalidRequestError as error:
        of_connection = f" (connection {connection})"
        problems = [text.removesuffix(of_connection) for text in error.problems]
        raise ProblemsError(problems) from None


def maintenance_window(value: Any) -> CronWindow:
    """A window of a cluster: cron, hours and timezone.

    :raises ValueError: with the cause, to be read after the window's name.
    """
    try:
        window = window_from_json(value)
    except TypeError as error:
        raise ValueError(str(error)) from None
    if not isinstance(window, CronWindow):
        raise ValueError("opens once only; write a cron that repeats, hours (and timezone)")
    if problem := cron_problem(window.cron):
        raise ValueError(f"has cron={window.cron!r}, which {problem}")
    return window


def _watch(value: Any) -> WatchRules:
    if not isinstance(value, Mapping):
        raise ValueError("is not a mapping")
    return WatchRules.parse(value, "watch")


def _targets(value: Any) -> Mapping[str, Any]:
    return upgraded_params(_without(value, lambda given: list(target_problems(given))))


def _settings(value: Any) -> Mapping[str, Any]:
    return _without(value, settings_problems)


def _without(
    value: Any, problems_of: Callable[[Mapping[str, Any]], list[str]]
) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("is not a mapping")
    if problems := problems_of({str(name): item for name, item in value.items()}):
        raise ProblemsError(problems)
    return dict(value)


class ClusterEntry(BaseModel):
    """One cluster of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    connection: Annotated[
        str,
        Field(
            min_length=1,
            strict=True,
            title="Connection",
            description="The connection, of type rehome_kafka or kafka. No two clusters share one.",
            examples=["kafka_berlin"],
        ),
    ]
    policy: Annotated[
        ConnectionPolicy | None,
        PlainValidator(_policy),
        ValueText("keys of a policy"),
        Field(
            title="Policy",
            description="What may be done through the connection: the keys of its rehome.policy. "
            "It stands in the file or in the connection, not in both.",
            examples=[{"approval": True, "largest_throttle": 50_000_000}],
        ),
    ] = None
    windows: Annotated[
        tuple[Annotated[CronWindow, PlainValidator(maintenance_window)], ...],
        ValueText("list of cron, hours and timezone"),
        Field(
            title="Windows",
            description="Maintenance windows: when rebalance_in_window runs. None: only to heal.",
            examples=[[{"cron": "0 1 * * *", "hours": 4, "timezone": "Europe/Berlin"}]],
        ),
    ] = ()
    own_plan: Annotated[
        bool | None,
        Shown("yes, unless the cluster had no windows before"),
        Field(
            strict=True,
            title="Own plan",
            description="Whether a window makes a plan of its own where none waits for it. With "
            "false it takes up only paused plans, plans that were handed over, and heals.",
        ),
    ] = None
    targets: Annotated[
        Mapping[str, Any],
        PlainValidator(_targets),
        ValueText("parameters of reassign_partitions"),
        Field(
            title="Targets",
            description="Defaults of this cluster for parameters of runs. What a person or a "
            "preset chooses comes first; an action that has no use for one does without.",
            examples=[{"tolerance": 0.05, "max_moves_per_broker": 2}],
        ),
    ] = {}
    caps: Annotated[
        BrokerCaps,
        PlainValidator(every_problem(read_caps)),
        ValueText("limits of a broker, by default and by broker id"),
        Shown("none"),
        Field(title="Caps", description="The most that brokers may hold."),
    ] = BrokerCaps()
    broker_sets: Annotated[
        tuple[BrokerSet, ...],
        PlainValidator(every_problem(read_broker_sets)),
        ValueText("list of name, topics and brokers"),
        Field(title="Broker sets", description="Topics that stay on a set of brokers."),
    ] = ()
    watch: Annotated[
        WatchRules | None,
        PlainValidator(every_problem(_watch)),
        ValueText("watch rules"),
        Shown("none: the setting watch_rules"),
        Field(
            title="Watch rules",
            description="When findings open and close, and what may be started for them, in place "
            "of the setting watch_rules. A rule that is left out has its default.",
            examples=[{"policies": {"dead_broker": "propose"}, "grace_s": 3600}],
        ),
    ] = None
    settings: Annotated[
        Mapping[str, Any],
        PlainValidator(_settings),
        ValueText("settings of Rehome"),
        Field(
            title="Settings",
            description="What this cluster has instead of Rehome's own settings.",
            examples=[{"max_partitions_in_flight": 50}],
        ),
    ] = {}

    @property
    def own_settings(self) -> dict[str, Any]:
        """What the cluster has instead of Rehome's own settings, its caps and sets among it."""
        limits: dict[str, Any] = {}
        if self.caps:
            limits["caps"] = caps_to_json(self.caps)
        if self.broker_sets:
            limits["broker_sets"] = broker_sets_to_json(self.broker_sets)
        setting_fields = Settings.model_fields
        return {**self.settings, **{n: value for n, value in limits.items() if n in setting_fields}}


class ClustersFile(BaseModel):
    """Every cluster by its name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    clusters: Annotated[
        Mapping[Annotated[str, Field(strict=True, pattern=NAME)], ClusterEntry],
        Field(description="Name of a cluster → its settings."),
    ] = {}

    @model_validator(mode="after")
    def _connections_differ(self) -> ClustersFile:
        first_by_connection: dict[str, str] = {}
        problems = []
        for name, entry in self.clusters.items():
            first = first_by_connection.setdefault(entry.connection, name)
            if first != name:
                problems.append(
                    f"clusters.{name}.connection: {entry.connection} is that of {first}, too."
                )
        if problems:
            raise ProblemsError(problems)
        return self

    def through(self, connection: str | None) -> ClusterEntry | None:
        """The cluster behind a connection; None = the file has none."""
        return next((e for e in self.clusters.values() if e.connection == connection), None)


NO_FILE = ClustersFile()
"""What holds without a file."""


def clusters_of(settings: Settings) -> ClustersFile:
    """The file that the settings name; :data:`NO_FILE` where they name none.

    :raises ClustersFileError: it cannot be read; names every problem with its place.
    """
    if not settings.clusters_file:
        return NO_FILE
    path = PROJECT / settings.clusters_file  # an absolute path stays as it is
    try:
        state = path.stat()
    except OSError as error:
        raise ClustersFileError([f"It cannot be read: {error.strerror}."], str(path)) from None
    return _read(path, state.st_mtime_ns, state.st_size)


def connections_named(settings: Settings) -> Mapping[str, str]:
    """Name of a cluster → its connection, as far as they can be read from a file whatever else is
    wrong with it: what runs for a cluster goes on meanwhile. Nothing, where it is no YAML.
    """
    try:
        content = yaml.safe_load((PROJECT / settings.clusters_file).read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError):
        return {}
    clusters = content.get("clusters") if isinstance(content, Mapping) else None
    return {
        name: entry["connection"]
        for name, entry in (clusters.items() if isinstance(clusters, Mapping) else ())
        if isinstance(name, str) and re.fullmatch(NAME, name) and isinstance(entry, Mapping)
        if isinstance(entry.get("connection"), str)
    }


@lru_cache(maxsize=4)
def _read(path: Path, _mtime_ns: int, _size: int) -> ClustersFile:
    try:
        return read_clusters(path.read_text())
    except OSError as error:
        raise ClustersFileError([f"It cannot be read: {error.strerror}."], str(path)) from None
    except RecursionError:
        raise ClustersFileError(["It is nested without end."], str(path)) from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ClustersFileError([f"It is no YAML: {error}."], str(path)) from None
    except ClustersFileError as error:
        raise ClustersFileError(error.problems, str(path)) from None


def read_clusters(text: str) -> ClustersFile:
    """The file's content.

    :raises ClustersFileError: names every problem with its place: ``clusters.berlin.windows[0]``.
    :raises yaml.YAMLError: it is no YAML.
    """
    content, problems = parse_yaml(text)
    if problems:
        raise ClustersFileError(problems)
    if not isinstance(content, Mapping) or "clusters" not in content:
        problem = "It has no key clusters, with a mapping of names to clusters."
        raise ClustersFileError([problem])
    try:
        return ClustersFile.model_validate(content)
    except ValidationError as error:
        raise ClustersFileError(list(_sentences(error))) from None


def _sentences(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        place = _place(problem["loc"])
        cause = problem.get("ctx", {}).get("error")
        match problem["type"]:
            case "extra_forbidden":
                model = ClusterEntry if len(problem["loc"]) > 1 else ClustersFile
                names = ", ".join(model.model_fields)
                yield f"{place}: there is no such key; known: {names}."
            case "missing":
                yield f"{place}: is needed."
            case "string_pattern_mismatch":
                yield (
                    f"{place}: is no name of a cluster: write small letters and digits, with "
                    "single -, _ or . between them."
                )
            case _ if isinstance(cause, ProblemsError):
                for text in cause.problems:
                    yield f"{place}: {text}" if place else text
            case _:
                why = str(cause) if cause else problem["msg"][:1].lower() + problem["msg"][1:]
                yield f"{place}: {why}."


def _place(location: tuple[int | str, ...]) -> str:
    """``clusters.berlin.windows[0]``; a key's own problem stands at its mapping."""
    parts = [part for part in location if part != "[key]"]
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".")
