"""Reads and changes of configs: which broker answers for which resource.

Topics and the cluster-wide default are everybody's; a broker's own configs are that broker's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from rehome.cluster.clients.clients import UNANSWERED, UNKNOWN_STATE, Clients, batches
from rehome.cluster.interface.rights import Call, naming_right
from rehome.cluster.messages import configs as messages
from rehome.domain.configs import ConfigChange, ConfigResource, ResourceType
from rehome.domain.kafka import BrokerError, BrokerId, ConfigValue

RESOURCES_PER_REQUEST = 1_000


def describe(
    clients: Clients, resources: Collection[ConfigResource], keys: Collection[str] | None
) -> dict[ConfigResource, dict[str, ConfigValue] | BrokerError]:
    """Configs of each resource, or why there are none."""
    configs: dict[ConfigResource, dict[str, ConfigValue] | BrokerError] = {}
    own, others = _of_brokers(resources)
    for batch in batches(others, RESOURCES_PER_REQUEST):
        request = messages.describe_configs_request(batch, keys)
        answer = clients.ask(Call.DESCRIBE_CONFIGS, partial(clients.reads.ask_any, request))
        configs |= messages.read_describe_configs(answer)
    if own:
        requests = {
            broker: messages.describe_configs_request([resource], keys)
            for broker, resource in own.items()
        }
        answers, missing = clients.ask(
            Call.DESCRIBE_CONFIGS, lambda: clients.reads.ask_each(requests)
        )
        for answer in answers.values():
            configs |= messages.read_describe_configs(answer)
        configs |= {own[broker]: error for broker, error in missing.items()}
    return {
        resource: naming_right(
            configs.get(resource, UNANSWERED), Call.DESCRIBE_CONFIGS, _topic(resource)
        )
        for resource in resources
    }


def alter(
    clients: Clients, changes: Sequence[ConfigChange], *, validate_only: bool
) -> dict[ConfigResource, BrokerError | None]:
    """The verdict per resource: of the controller, or of the broker whose own configs they are."""
    changes_by_resource: dict[ConfigResource, list[ConfigChange]] = {}
    for change in changes:
        changes_by_resource.setdefault(change.resource, []).append(change)
    own, others = _of_brokers(changes_by_resource)
    verdicts: dict[ConfigResource, BrokerError | None] = {}
    for batch in batches(others, RESOURCES_PER_REQUEST):
        request = messages.alter_configs_request(
            [change for resource in batch for change in changes_by_resource[resource]],
            validate_only=validate_only,
        )
        verdicts |= messages.read_alter_configs(
            clients.ask_controller(Call.ALTER_CONFIGS, request, state_left=UNKNOWN_STATE)
        )
    if own:
        requests = {
            broker: messages.alter_configs_request(
                changes_by_resource[resource], validate_only=validate_only
            )
            for broker, resource in own.items()
        }
        verdicts |= _alter_at_brokers(clients, own, requests)
    return {
        resource: naming_right(
            verdicts.get(resource, UNANSWERED), Call.ALTER_CONFIGS, _topic(resource)
        )
        for resource in changes_by_resource
    }


def _alter_at_brokers(
    clients: Clients, own: Mapping[BrokerId, ConfigResource], requests: Mapping[BrokerId, Any]
) -> dict[ConfigResource, BrokerError | None]:
    answers, missing = clients.ask(
        Call.ALTER_CONFIGS,
        lambda: clients.controller.ask_each(requests),
        state_left=UNKNOWN_STATE,
    )
    verdicts: dict[ConfigResource, BrokerError | None] = {}
    for answer in answers.values():
        verdicts |= messages.read_alter_configs(answer)
    for broker, reason in missing.items():
        # The controllers take a dead broker's configs too, at their own listener.
        answer = clients.ask_quorum(requests[broker])
        if answer is None:
            verdicts[own[broker]] = reason
        else:
            verdicts |= messages.read_alter_configs(answer)
    return verdicts


def _topic(resource: ConfigResource) -> str | None:
    return resource.name if resource.type is ResourceType.TOPIC else None


def _of_brokers(
    resources: Iterable[ConfigResource],
) -> tuple[dict[BrokerId, ConfigResource], list[ConfigResource]]:
    """Resources that only one broker answers for, and those that every broker does."""
    own: dict[BrokerId, ConfigResource] = {}
    others = []
    for resource in resources:
        if resource.type is ResourceType.BROKER and resource.name:
            own[int(resource.name)] = resource
        else:
            others.append(resource)
    return own, others
