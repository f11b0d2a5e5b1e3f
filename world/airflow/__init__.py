"""A stand-in for Airflow: its states, XComs, deferral and triggers, around Rehome's real DAGs."""
