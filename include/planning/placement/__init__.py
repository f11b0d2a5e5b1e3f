"""Which brokers hold a partition: spread over racks, rings, room on disks."""
