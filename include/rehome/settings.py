"""Every setting of Rehome, with its default, in one place; the environment can set each.

``REHOME_<FIELD>`` (upper case) overrides a field: ``REHOME_WAREHOUSE=s3://bucket/rehome``.
On Airflow's side the Variable ``rehome`` (a JSON object of the same names) comes on top, and
the connection ``rehome_ledger`` replaces ``ledger_url``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from rehome import setting_types as types
from rehome.domain.request import limits
from rehome.errors import InvalidRequestError
from rehome.field_descriptions import Described, Shown, Unit, ValueText, describe_fields
from rehome.places_settings import PlacesSettings
from rehome.setting_problems import CORRECT_SETTINGS, given_settings, problems_of

THROTTLE_EFFICIENCY = 0.95
"""The governor comes to what was asked for from below."""
FIRST_POLL_S = 5.0
"""The progress trigger's first poll comes no sooner: Airflow takes a deferral that fires at once
for a failure, since its worker was not seen to end yet."""


class Settings(PlacesSettings):
    """Where things are kept and how patient Rehome is. Each field says what it is for."""

    throttle_efficiency: Annotated[
        float,
        Field(
            gt=0,
            le=1,
            title="Throttle efficiency",
            description="Part of the rate asked for that brokers deliver as it is governed: "
            "admission and predictions use it.",
        ),
    ] = THROTTLE_EFFICIENCY
    auto_throttle_bytes_per_s: Annotated[
        types.Rate,
        Field(
            title="Rate of auto while planning",
            description="The rate that throttle auto plans with. What it sets is known when the "
            "dry run has measured the traffic.",
        ),
    ] = 50_000_000
    broker_capacity_bytes_per_s: Annotated[
        types.Rate,
        Field(
            title="Capacity of a broker",
            description="What a broker can take in, and can send: throttle auto leaves enough for "
            "the traffic that is there.",
        ),
    ] = 125_000_000
    max_snapshot_age_s: Annotated[
        types.Seconds,
        Field(
            title="Age of a snapshot",
            description="The gate refuses to plan on anything older.",
        ),
    ] = 3600.0
    poll_interval_s: Annotated[
        types.Seconds,
        Field(
            title="Poll interval",
            description="Time between two polls of a running plan.",
        ),
    ] = 5.0
    wake_s: Annotated[
        types.SecondsOrNone,
        Field(
            title="Time to wake a task",
            description="Time that Airflow takes to bring a deferred task back to a worker. "
            "Admission and predictions reckon with it and the poll interval.",
        ),
    ] = 10.0
    stall_alert_s: Annotated[
        types.Seconds,
        Field(
            title="Stall alert",
            description="A plan that gains no byte for this long is reported as stalled.",
        ),
    ] = 60.0
    stall_timeout_s: Annotated[
        types.Seconds,
        Field(
            title="Stall timeout",
            description="A plan that gains no byte for this long fails.",
        ),
    ] = 600.0
    max_partitions_in_flight: Annotated[
        types.Count,
        Field(
            title="Partitions in flight",
            description="The most partitions that may be in flight at the controller at once. "
            "While this is the default, moves of up to small_move_bytes come on top of it.",
        ),
    ] = 200
    small_move_bytes: Annotated[
        types.Size,
        Field(
            title="Small moves",
            description="Moves of no more bytes take none of the places that "
            "max_moves_per_broker gives a broker, unless a run sets that parameter, and are "
            "followed by the next ones as soon as they have ended. 0 = no move is small.",
        ),
    ] = 1_000_000
    approval_lasts_s: Annotated[
        types.SecondsOrNone,
        Field(
            title="An approval lasts",
            description="A plan may start, or go on in another run, for this long after it was "
            "approved.",
        ),
    ] = 24 * 3600.0
    alert_channels: Annotated[
        tuple[Mapping[str, Any], ...],
        BeforeValidator(types.from_json),
        ValueText("JSON list of objects"),
        Shown("none: alerts are shown on the page only"),
        Field(
            title="Alert channels",
            description="Airflow's notifiers that alerts go to, each with its arguments and the "
            "kinds of alerts that it gets.",
            repr=False,  # arguments may hold secrets
        ),
    ] = ()
    webhook_allow_http: Annotated[
        bool,
        Field(
            title="Webhooks with a secret over HTTP",
            description="Whether the webhook notifier posts to http:// although its connection has "
            "a password or a signing secret: who is on the way reads the password and the message.",
        ),
    ] = False
    alert_again_s: Annotated[
        types.Seconds,
        Field(
            title="Alert again",
            description="An alert whose cause lasts is sent again after this long.",
        ),
    ] = 3600.0
    lease_s: Annotated[
        types.Seconds,
        Field(
            title="Lease",
            description="A run that sends no heartbeat for this long may be taken over: its "
            "plan can be cancelled, or continued by another run. It is at least four polls.",
        ),
    ] = 60.0
    min_free_disk_fraction: Annotated[
        float,
        Field(
            ge=0,
            lt=1,
            title="Free disk",
            description="Part of a log dir that must stay free at every moment; 0.05 is 5 %.",
        ),
    ] = 0.05
    refuse_fewer_domains: Annotated[
        bool,
        Field(
            title="Refuse fewer failure domains",
            description="A plan that leaves partitions in fewer racks, or with fewer replicas, "
            "than they have is refused by its dry run. Otherwise that is a warning.",
        ),
    ] = False
    caps: Annotated[
        limits.BrokerCaps,
        BeforeValidator(types.caps_of),
        ValueText("JSON object"),
        Shown("none"),
        Field(
            title="Caps",
            description=f"{limits.CAPS_ABOUT} A run's parameter overrides it.",
            examples=[limits.CAPS_EXAMPLE],
        ),
    ] = limits.BrokerCaps()
    broker_sets: Annotated[
        tuple[limits.BrokerSet, ...],
        BeforeValidator(types.broker_sets_of),
        ValueText("JSON list of objects"),
        Shown("none"),
        Field(
            title="Broker sets",
            description=f"{limits.SETS_ABOUT} A run's parameter overrides it.",
            examples=[list(limits.SETS_EXAMPLE)],
        ),
    ] = ()
    history_days: Annotated[
        types.Days,
        Field(title="History", description="How many days of history a plan reads."),
    ] = 7
    min_history_hours: Annotated[
        float,
        Unit("hours"),
        Field(
            ge=0,
            le=types.LONGEST_DAYS * 24,
            title="Least history",
            description="A partition's load is known once it was watched for that long.",
        ),
    ] = 24.0
    max_snapshot_gap_s: Annotated[
        types.Seconds,
        Field(
            title="Gap between snapshots",
            description="What happened in a longer span between two snapshots is not known: "
            "neither the load, nor whether what watching has seen has lasted.",
        ),
    ] = 1800.0
    snapshot_retention_days: Annotated[
        types.Days,
        Field(
            title="Snapshots are kept",
            description="Older snapshots are removed once they are rolled up.",
        ),
    ] = 7
    rollup_retention_days: Annotated[
        types.Days,
        Field(title="Rollups are kept", description="Older daily rollups are removed."),
    ] = 90
    plan_retention_days: Annotated[
        types.Days,
        Field(
            title="Plans are kept",
            description="`remove_old_data` removes plans that ended longer ago, with their files, "
            "and those that were made longer ago and never begun.",
        ),
    ] = 400
    forecast_days: Annotated[
        types.Days,
        Field(title="Forecast", description="How far ahead disks are forecast."),
    ] = 30
    watch_rules: Annotated[
        Mapping[str, Any],
        BeforeValidator(types.from_json),
        ValueText("JSON object"),
        Shown("the defaults of each rule: people are alerted, nothing is started"),
        Field(
            title="Watch rules",
            description="When findings of a cluster open and close, and what may be started for "
            "them. The key watch of a cluster in the clusters file replaces them as a whole.",
            examples=[{"policies": {"dead_broker": "propose"}, "grace_s": 3600}],
        ),
    ] = {}
    clusters_file: Annotated[
        str,
        Shown("none"),
        Field(
            title="Clusters file",
            description="The YAML file with settings of each cluster; a relative path begins at "
            "the project folder. Nothing given: there is one cluster, behind kafka_default. "
            "Airflow parses DAGs without the Variable: only the environment sets it.",
            examples=["clusters.yaml"],
        ),
    ] = ""
    window_cron: Annotated[
        str,
        Field(
            title="Windows open",
            description="When windows of rebalance_in_window open, as a cron expression. Airflow "
            "parses DAGs without the Variable: only the environment sets the settings of "
            "windows. With a clusters file, its windows count instead.",
            examples=["0 1 * * *", "0 22 * * 5"],
        ),
    ] = "0 1 * * *"
    window_duration_s: Annotated[
        types.Seconds,
        Field(title="Windows last", description="How long a window stays open."),
    ] = 4 * 3600.0
    window_timezone: Annotated[
        str,
        Field(
            title="Time zone of windows",
            description="The time zone in which the cron expression is read.",
            examples=["Europe/Berlin"],
        ),
    ] = "UTC"
    window_own_plan: Annotated[
        bool | None,
        Shown("yes, unless the cluster had no windows before"),
        Field(
            title="Windows plan",
            description="Whether a window makes a plan of its own where none waits for it. Only "
            "the environment sets it. With a clusters file, its key own_plan counts instead.",
        ),
    ] = None

    _removed: tuple[str, ...] = ()

    @property
    def removed(self) -> tuple[str, ...]:
        """Settings that were given, and that this version ignores."""
        return self._removed

    @property
    def reaction_s(self) -> float:
        """Time until the next poll, and until the worker acts."""
        return self.poll_interval_s + self.wake_s

    @classmethod
    def load(cls, overrides: Mapping[str, Any] | None = None) -> Settings:
        """Defaults, then REHOME_* environment variables, then ``overrides``.

        :raises InvalidRequestError: names every unknown setting, and every value that does not fit.
        """
        given, removed = given_settings(cls.model_fields, overrides or {})
        try:
            settings = cls.model_validate(given)
            settings._removed = removed
            return settings
        except ValidationError as error:
            problems = list(problems_of(error, overrides or {}, known_settings()))
            raise InvalidRequestError(problems, next_step=CORRECT_SETTINGS) from None


def settings_described() -> tuple[Described, ...]:
    """Every setting as data, for documents; ``env_name`` has its environment variable."""
    return describe_fields(Settings)


def known_settings() -> dict[str, Described]:
    """The same by their names."""
    return {item.name: item for item in settings_described()}
