"""Local search over placements: brokers shed, others receive, replicas trade places."""
