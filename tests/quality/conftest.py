"""The Spark session that the gates run on."""

from tests.session.spark_session import spark

__all__ = ["spark"]
