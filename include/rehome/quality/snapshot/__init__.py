"""The gate on a snapshot: rules, and the tables that they are checked on."""
