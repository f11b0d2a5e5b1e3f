"""The ledger's database, tables, records, and the fence around its writes."""
