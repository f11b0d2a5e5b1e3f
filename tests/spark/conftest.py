"""The Spark session that the job joins when it runs in this process."""

from tests.session.spark_session import spark

__all__ = ["spark"]
