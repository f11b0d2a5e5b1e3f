"""Rehome's domain: importable without Airflow and without Spark."""
