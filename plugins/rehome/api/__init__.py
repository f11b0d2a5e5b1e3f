"""Airflow's API server: who may send what to Rehome's DAGs, and what people have decided there."""
