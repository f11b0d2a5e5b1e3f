"""Airflow's side of Rehome: hooks, operators, a sensor with its trigger, a notifier."""
