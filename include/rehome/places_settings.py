"""Settings of where snapshots, plans and the ledger are, and how long Rehome waits for brokers."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from rehome import setting_types as types
from rehome.field_descriptions import Shown


class PlacesSettings(BaseModel):
    """The warehouse, the ledger and the brokers: what a task opens."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    warehouse: Annotated[
        str,
        BeforeValidator(types.warehouse_of),
        Shown("$AIRFLOW_HOME/rehome/warehouse"),
        Field(
            title="Warehouse",
            description="URI of snapshots and plans: file, s3, gs, abfss or hdfs. A store needs "
            "its extra, such as rehome[s3].",
            examples=["s3://bucket/rehome"],
        ),
    ] = ""
    warehouse_connection: Annotated[
        str,
        Shown("none"),
        Field(
            title="Connection of the warehouse",
            description="The Airflow connection whose credentials the warehouse is opened with: of "
            "type aws, google_cloud_platform, wasb or generic. None = those of each machine.",
            examples=["rehome_s3"],
        ),
    ] = ""
    other_uri_schemes: Annotated[
        str,
        AfterValidator(types.schemes_of),
        Shown("none"),
        Field(
            title="Other schemes of URIs",
            description="Schemes that the warehouse may have besides those, parted by commas. Only "
            "the environment can set it, that of every Airflow component.",
            examples=["az, oss"],
        ),
    ] = ""
    warehouse_mode: Annotated[
        types.Mode,
        Field(
            title="Mode of the warehouse",
            description="Who may enter the folder of a warehouse on a disk (file://): it is made "
            "with this mode, and one from before loses what others may do beyond it. Give 0755 "
            "where Spark or readers run as other users. No credentials are ever in it.",
            examples=["0755"],
        ),
    ] = "0750"
    warehouse_is_shared: Annotated[
        bool,
        Field(
            title="Warehouse is shared",
            description="Whether a warehouse on a disk (file://) is the same folder on all "
            "machines that run tasks, such as a mounted share. Where it is not, executors that run "
            "tasks on other machines are refused.",
        ),
    ] = False
    ledger_url: Annotated[
        str,
        BeforeValidator(types.ledger_url_of),
        Shown("sqlite:///$AIRFLOW_HOME/rehome/ledger.db"),
        Field(
            title="Ledger",
            description="SQLAlchemy URL of the ledger. The connection rehome_ledger replaces it.",
            examples=["postgresql://rehome@db.example/rehome"],
            repr=False,  # may hold a password
        ),
    ] = ""
    ledger_is_connection: Annotated[
        bool,
        Field(
            title="Ledger is the connection's",
            description="Whether Airflow's processes open no other ledger than that of the "
            "connection rehome_ledger. Where a secrets backend does not answer, Airflow says that "
            "there is no such connection: tasks fail then. Only the environment can set it, that "
            "of every Airflow component.",
        ),
    ] = False
    request_timeout_s: Annotated[
        types.Seconds,
        Field(title="Request timeout", description="Bound on each request to a broker."),
    ] = 10.0
    connect_timeout_s: Annotated[
        types.Seconds,
        Field(
            title="Connect timeout",
            description="Bound on connecting and authenticating, TLS handshake included.",
        ),
    ] = 5.0
