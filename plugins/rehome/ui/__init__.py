"""The page "Reassignments" in Airflow: what moves, how far, until when, and what can be done."""
