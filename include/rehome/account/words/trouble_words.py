"""What is not well with a cluster, in words: what it is, and what to do about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from rehome.account.clusters.troubles import Trouble, TroubleKind
from rehome.account.words.unsent_words import UNSENT_STEP, unsent_text
from rehome.domain.text import count_text, first_names
from rehome.execution.access.words.policy_words import difference_text

Text = Callable[[Trouble], str]
_BY_CLIENTS = "They are listed on the page of the cluster, under Reassignments in flight."


def trouble_text(trouble: Trouble) -> tuple[str, str]:
    """What it is, and what to do about it; the second may be "": the first says it."""
    return _TEXTS[trouble.kind](trouble), _STEPS[trouble.kind](trouble)


def troubles_in_short(troubles: Iterable[Trouble]) -> str:
    """All of a cluster in one line: ``2 brokers not alive, 1 finding``; "" = there are none."""
    counts = Counter[TroubleKind]()
    for each in troubles:
        counts[each.kind] += each.count
    return ", ".join(_SHORT[kind](counts[kind]) for kind in TroubleKind if counts[kind])


def _count_of(one: str, many: str) -> Text:
    return lambda trouble: (
        f"{count_text(trouble.count, one, many)}: {_names(trouble)}."
        if trouble.names
        else f"{count_text(trouble.count, one, many)}."
    )


def _names(trouble: Trouble) -> str:
    return first_names(trouble.names, count=trouble.count)


def _always(text: str) -> Text:
    return lambda _: text


def _of_broker(how: str) -> Text:
    return lambda trouble: f"Broker {trouble.names[0]} {how}: {trouble.said}"


def _differ(trouble: Trouble) -> str:
    assert trouble.differs is not None
    return f"{difference_text(trouble.differs)}."


_TEXTS: Mapping[TroubleKind, Text] = {
    TroubleKind.WRONG_CONNECTION: lambda trouble: f"{trouble.said}.",
    TroubleKind.NO_LEADER: _count_of("partition had no leader", "partitions had no leader"),
    TroubleKind.BROKER_DEAD: _of_broker("was not alive"),
    TroubleKind.BROKER_SILENT: _of_broker("did not answer every request"),
    TroubleKind.PLAN: lambda trouble: (
        f"Plan {trouble.names[0]}, which holds the cluster, is slowed down or held up by "
        f"{count_text(trouble.count, 'problem')}."
    ),
    TroubleKind.OWED: lambda trouble: (
        f"{count_text(trouble.count, 'throttle setting')} of ended plans may still be set."
    ),
    TroubleKind.FINDINGS: lambda trouble: (
        f"{count_text(trouble.count, 'finding is open', 'findings are open')}."
    ),
    TroubleKind.UNDER_REPLICATED: _count_of(
        "partition was under-replicated", "partitions were under-replicated"
    ),
    TroubleKind.FOREIGN_REASSIGNMENTS: _count_of(
        "partition was being reassigned by another client",
        "partitions were being reassigned by other clients",
    ),
    TroubleKind.FOREIGN_THROTTLES: _count_of(
        "throttle setting was not Rehome's", "throttle settings were not Rehome's"
    ),
    TroubleKind.NOT_SENT: lambda trouble: unsent_text(trouble.alert, trouble.names, trouble.said),
    TroubleKind.POLICIES_DIFFER: _differ,
    TroubleKind.HIDDEN_TOPICS: lambda trouble: (
        f"{count_text(trouble.count, 'topic has', 'topics have')} replicas on log dirs, and this "
        "connection may not describe the topics."
    ),
}
_STEPS: Mapping[TroubleKind, Text] = {
    TroubleKind.WRONG_CONNECTION: lambda trouble: (
        f"Nothing starts through connection {trouble.names[0]}: see the page Clusters."
    ),
    TroubleKind.NO_LEADER: _always("Bring back a broker that holds an in-sync replica."),
    TroubleKind.BROKER_DEAD: _always(
        "Start it. If it stays dead, trigger fix_offline_replicas, or drain it."
    ),
    TroubleKind.BROKER_SILENT: _always(
        "What it did not answer is not known. See its log, and the rights of the connection's "
        "principal: the next snapshot asks again."
    ),
    TroubleKind.PLAN: _always("The plan's page says what each is, and what to do about it."),
    TroubleKind.OWED: _always("sweep_throttles takes them back."),
    TroubleKind.FINDINGS: _always(""),
    TroubleKind.UNDER_REPLICATED: _always("Wait until the brokers have caught up, or see why not."),
    TroubleKind.FOREIGN_REASSIGNMENTS: _always(_BY_CLIENTS),
    TroubleKind.FOREIGN_THROTTLES: _always("If no other client needs them, delete them by hand."),
    TroubleKind.NOT_SENT: _always(UNSENT_STEP),
    TroubleKind.POLICIES_DIFFER: _always("The strictest holds."),
    TroubleKind.HIDDEN_TOPICS: _always(
        "Grant its principal DESCRIBE on them (docs/security.md): the next snapshot has them, too."
    ),
}
_SHORT: Mapping[TroubleKind, Callable[[int], str]] = {
    TroubleKind.WRONG_CONNECTION: lambda count: count_text(
        count, "connection leads elsewhere", "connections lead elsewhere"
    ),
    TroubleKind.NO_LEADER: lambda count: f"{count_text(count, 'partition')} without a leader",
    TroubleKind.BROKER_DEAD: lambda count: f"{count_text(count, 'broker')} not alive",
    TroubleKind.BROKER_SILENT: lambda count: f"{count_text(count, 'broker')} without every answer",
    TroubleKind.PLAN: lambda count: f"{count_text(count, 'problem')} of its plan",
    TroubleKind.OWED: lambda count: f"{count_text(count, 'throttle setting')} of ended plans",
    TroubleKind.FINDINGS: lambda count: count_text(count, "finding"),
    TroubleKind.UNDER_REPLICATED: lambda count: (
        f"{count_text(count, 'partition')} under-replicated"
    ),
    TroubleKind.FOREIGN_REASSIGNMENTS: lambda count: (
        f"{count_text(count, 'partition')} reassigned by other clients"
    ),
    TroubleKind.FOREIGN_THROTTLES: lambda count: (
        f"{count_text(count, 'throttle setting')} of other clients"
    ),
    TroubleKind.NOT_SENT: lambda count: f"{count_text(count, 'alert')} not sent",
    TroubleKind.POLICIES_DIFFER: lambda _: "policies differ",
    TroubleKind.HIDDEN_TOPICS: lambda count: f"{count_text(count, 'topic')} hidden",
}
