"""Airflow's side without a run."""

from tests import airflow_home

assert airflow_home.HOME.exists()
