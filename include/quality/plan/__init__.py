"""The hard rules on a plan, and the tables that they are checked on."""
