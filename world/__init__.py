"""The world in which a simulator runs the real code: brokers, people, time. Never shipped."""
