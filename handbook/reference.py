"""Writes docs/reference from the code: parameters, settings, connection keys, states,
alerts, metrics, routes, commands, what DAG authors import, what joins the rooms. And
docs/proposals.md, from the list of demands, and where Rehome was tried.

    python -m handbook.reference

A test fails where a page there is not what this writes.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

from handbook.alerts import alerts_page
from handbook.commands import commands_page
from handbook.functions import functions_page
from handbook.installations import installations_page
from handbook.kafka_versions import kafka_versions_page
from handbook.library import library_page
from handbook.markdown import table
from handbook.metrics import metrics_page
from handbook.parameters import parameters_page
from handbook.proposals import PAGE as PROPOSALS
from handbook.proposals import proposals_page
from handbook.routes import routes_page
from handbook.sources import ROOT, dags, member_docs
from rehome.cluster.connection.keys import KEYS, OF_POLICY, ConnectionKey
from rehome.clusters.clusters_file import ClusterEntry
from rehome.clusters.watch_rules import WatchRules
from rehome.domain.request.limits import BrokerLimits, BrokerSet
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.access.policy_keys import PolicyKeys
from rehome.field_descriptions import Described, describe_fields
from rehome.ledger.base.audit_entry import Decided, Door
from rehome.ledger.base.records import ThrottleState
from rehome.settings import Settings

REFERENCE = ROOT / "docs" / "reference"
NOTE = "<!-- Written by `make docs-reference` from the code: change it there. -->\n\n"


def pages() -> dict[str, str]:
    """File name → text of each generated page."""
    made = {
        "parameters.md": parameters_page(list(dags())),
        "settings.md": settings_page(),
        "connection.md": connection_page(),
        "clusters-file.md": clusters_page(),
        "states.md": states_page(),
        "alerts.md": alerts_page(),
        "metrics.md": metrics_page(),
        "routes.md": routes_page(),
        "library.md": library_page(),
        "commands.md": commands_page(),
        "functions.md": functions_page(),
        "installations.md": installations_page(),
        "kafka-versions.md": kafka_versions_page(),
    }
    return {name: NOTE + text for name, text in made.items()}


def settings_page() -> str:
    """Every setting with its default."""
    rows = [
        (f"`{item.name}`", _values(item), _code(item.shown_default), item.description)
        for item in describe_fields(Settings)
    ]
    rules = [
        (f"`{item.name}`", _values(item), _code(item.shown_default), item.description)
        for item in describe_fields(WatchRules)
    ]
    return f"""# Settings

A setting is a key of the Airflow Variable `rehome` (a JSON object), or an environment variable
`REHOME_` and its name in capitals, such as `REHOME_POLL_INTERVAL_S`. The Variable wins. The
connection `rehome_ledger` replaces `ledger_url`. A change of the Variable or of that connection is
read within half a minute; the environment is read when a process starts.

{table(("setting", "values", "default", "meaning"), rows)}

## Watch rules

Keys of the setting `watch_rules`, and of `watch` in the clusters file:
[watch clusters](../howto/watch.md).

{table(("rule", "values", "default", "meaning"), rules)}
"""


def _values(item: Described) -> str:
    return f"{item.kind}; {item.unit}" if item.unit else item.kind


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def connection_page() -> str:
    """Every key of a connection, and of its policy."""
    rows = [_key_row(key) for key in (*KEYS, OF_POLICY)]
    limits = [(f"`{key.name}`", key.kind, key.description) for key in describe_fields(PolicyKeys)]
    return f"""# Connection

Rehome reads an Airflow connection of its own type `rehome_kafka`, or of the Kafka provider's type
`kafka`, by default `kafka_default`. Its extra is a JSON object of librdkafka's settings. Of
`rehome_kafka`, *Bootstrap servers* (host) and *Port* stand for `bootstrap.servers`, *User* and
*Password* for `sasl.username` and `sasl.password`, or the client's id and secret with OAUTHBEARER.

A setting that one of Rehome's two Kafka clients cannot honour is refused by name. Settings of
producers and consumers may be there, too, and are ignored.

{table(("key", "values", "default", "meaning"), rows)}

## Policy

Keys of the JSON object `rehome.policy`. What is left out is not limited. [How to use
it](../security.md#what-may-be-done-through-a-connection).

{table(("key", "values", "meaning"), limits)}
"""


def clusters_page() -> str:
    """Every key of the clusters file."""
    rows = [
        (f"`{item.name}`", item.kind, item.description) for item in describe_fields(ClusterEntry)
    ]
    limits = [
        (f"`{item.name}`", _values(item), item.description)
        for item in describe_fields(BrokerLimits)
    ]
    sets = [
        (f"`{item.name}`", _values(item), item.description) for item in describe_fields(BrokerSet)
    ]
    return f"""# Clusters file

Below `clusters`, one mapping for each cluster by its name: small letters and digits, with single -,
_ or . between them. Only `connection` is needed. [How to use it](../howto/clusters-file.md).

{table(("key", "values", "meaning"), rows)}

## Caps

`caps` has `default` for every broker, and `brokers` by broker id.

{table(("key", "values", "meaning"), limits)}

## Broker sets

{table(("key", "values", "meaning"), sets)}
"""


def _key_row(key: ConnectionKey) -> tuple[str, ...]:
    return f"`{key.name}`", key.values, _code(key.default), key.meaning


def states_page() -> str:
    """States of plans, moves and throttle entries in the ledger; kinds of events and decisions."""
    parts = [
        "# States",
        "What the ledger says of a plan, of its moves, of what it has set, of what happened, and "
        "of [who decided what](../audit.md).",
    ]
    parts += _states("A plan", PlanState)
    parts += _states("A move", MoveState)
    parts += _states("A throttle entry", ThrottleState)
    parts += _states("An event", EventKind, "kind")
    parts += _states("A decision in the audit", Decided, "decision")
    parts += _states("How a decision came in", Door, "door")
    return "\n\n".join(parts) + "\n"


def _states(title: str, states: type[enum.StrEnum], named: str = "state") -> Iterator[str]:
    yield f"## {title}"
    rows = [(f"`{value}`", text) for value, text in member_docs(states).items()]
    yield table((named, "meaning"), rows)


def main() -> None:
    """Write every page."""
    for name, text in pages().items():
        (REFERENCE / name).write_text(text)
    PROPOSALS.write_text(proposals_page())


if __name__ == "__main__":
    main()
