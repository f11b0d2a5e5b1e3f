"""A whole Airflow on this machine, loopback only."""
