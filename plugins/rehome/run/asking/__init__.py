"""Questions to people: their text, and what Airflow has of them."""
