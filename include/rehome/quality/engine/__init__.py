"""Rules as data, and how Great Expectations and Spark check them."""
