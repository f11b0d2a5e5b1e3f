"""What the page in Airflow shows, as plain data: no HTML, no Airflow."""
