"""A broker that refuses to show or to change its own configurations.

ACLs are the same on all real brokers: that one refuses is put into the place of its answer.
"""

from __future__ import annotations

from typing import Any

import pytest

from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.domain.kafka import BrokerId

CONFIGS = {"DescribeConfigsRequest", "IncrementalAlterConfigsRequest"}


def let_refuse(patches: pytest.MonkeyPatch, gateway: ClusterGateway, broker: BrokerId) -> None:
    """From now on the gateway is told that this broker refuses; it is not asked."""
    for wire in (gateway.clients.reads, gateway.clients.controller):

        def ask_each(requests: Any, ask: Any = wire.ask_each) -> Any:
            heard = {
                to: request
                for to, request in requests.items()
                if to != broker or type(request).__name__ not in CONFIGS
            }
            answers, missing = ask(heard)
            for refusing in requests.keys() - heard.keys():
                missing[refusing] = ErrorCode.CLUSTER_AUTHORIZATION_FAILED.error()
            return answers, missing

        patches.setattr(wire, "ask_each", ask_each)
