"""A model of Kafka: brokers' real rules, in memory and in virtual time.

Coded from the protocol and from what real brokers do, never from what Rehome expects of them.
"""
