"""What each broker says that it can, by the versions of its requests and features."""

from __future__ import annotations

from collections.abc import Iterable

from rehome.cluster.clients.clients import Clients
from rehome.cluster.interface.errors import verdict
from rehome.cluster.interface.rights import Call
from rehome.cluster.messages import admin as messages
from rehome.domain.kafka import BrokerId, Partial, SupportedVersions


def supported_versions(
    clients: Clients, brokers: Iterable[BrokerId]
) -> Partial[dict[BrokerId, SupportedVersions]]:
    """Ask these brokers, all at once. Needs no right.

    A request that a broker hands on to the controller has the version that both have.
    """
    answers, missing = clients.ask(
        Call.API_VERSIONS,
        lambda: clients.reads.ask_each(dict.fromkeys(brokers, messages.features_request())),
    )
    versions: dict[BrokerId, SupportedVersions] = {}
    for broker, answer in answers.items():
        error = verdict(answer.error_code)
        if error is not None:
            missing[broker] = error
        else:
            versions[broker] = messages.read_supported_versions(answer)
    return Partial(versions, missing)
