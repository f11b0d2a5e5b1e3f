"""The gates without Spark: their own rules and facts, judged row by row in this process."""
