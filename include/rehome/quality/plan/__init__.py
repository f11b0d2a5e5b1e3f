"""The gate on a plan: hard rules, and the tables that they are checked on."""
