"""Rehome's own code, run unchanged: an installation, its tasks in the order of the DAG, Airflow."""
