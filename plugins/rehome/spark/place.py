"""Where a connection of Airflow says that Spark runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rehome.errors import InvalidConnectionError

CONNECT = "sc://"
_CONNECT_TYPE = "spark_connect"
_CONF = "conf"
_PYTHON_IN_DRIVER = "spark.pyspark.driver.python"


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """What a connection says of Spark.

    :param master: as spark-submit takes it, or the address of a Spark Connect server.
    :param conf: Spark's settings in the extra, under ``conf``.
    """

    master: str
    in_cluster: bool = False
    conf: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, connection: Any, deploy_mode: str | None = None) -> SparkPlace:
        """Read a connection, as the provider's hooks do.

        :param deploy_mode: client or cluster; None = what the extra says.
        :raises InvalidConnectionError: Spark, or Rehome, cannot run a job so.
        """
        extra = connection.extra_dejson
        conf = extra.get(_CONF) or {}
        mode = deploy_mode or extra.get("deploy-mode")
        place = cls(_master_of(connection), mode == "cluster", _text_of(connection, conf))
        if place.in_cluster and place.master.startswith("spark://"):
            raise InvalidConnectionError(
                connection.conn_id,
                [
                    "A standalone cluster of Spark runs no driver of a Python application "
                    "(deploy mode cluster)."
                ],
            )
        return place

    @property
    def is_local(self) -> bool:
        """Whether executors are in the driver's own process, or are its children."""
        return self.master.startswith("local")

    @property
    def is_server(self) -> bool:
        """Whether a Spark Connect server has Spark running already."""
        return self.master.startswith(CONNECT)

    @property
    def is_kubernetes(self) -> bool:
        """Whether Kubernetes runs Spark."""
        return self.master.startswith("k8s://")

    @property
    def passes_environment(self) -> bool:
        """Whether the driver gets its environment as it is, and not on a command line."""
        return self.is_local or self.is_server or self.master.startswith("spark://")

    def python_of_driver(self, python: str) -> dict[str, str]:
        """The setting that has the driver run by this Python, where it runs beside the caller.

        Executors on other machines have a Python of their own: that of ``spark.pyspark.python``,
        or else the ``python3`` of their ``PATH``.
        """
        return {} if self.in_cluster or self.is_local else {_PYTHON_IN_DRIVER: python}


def _master_of(connection: Any) -> str:
    """The provider's rule: a host may be a whole address, else the type is its scheme."""
    host, kind = connection.host or "", connection.conn_type
    if kind == _CONNECT_TYPE:
        master = host if "://" in host else f"{CONNECT}{host}"
    elif kind == "spark" and ("://" in host or not connection.port):
        master = host or "local"
    else:
        master = f"{kind}://{host}"
    return f"{master}:{connection.port}" if connection.port else master


def _text_of(connection: Any, conf: Any) -> dict[str, str]:
    if isinstance(conf, dict) and not any(isinstance(v, dict | list) for v in conf.values()):
        return {str(key): _as_spark_reads(value) for key, value in conf.items()}
    raise InvalidConnectionError(
        connection.conn_id, [f"{_CONF!r} in its extra is to be an object of names and values."]
    )


def _as_spark_reads(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
