"""The Spark session that the job joins when it runs in this process."""

from tests.spark_session import spark

__all__ = ["spark"]
