"""Commands that act through an Airflow's API and the page in it, as the person who asks."""
