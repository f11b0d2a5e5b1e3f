"""Throttle configurations read and changed: the journal first, then a reading as proof."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from rehome.cluster.interface.error_codes import NO_ANSWER, TRANSIENT, ErrorCode
from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource, Configs
from rehome.domain.kafka import BrokerError, ConfigValue
from rehome.domain.text import first_names
from rehome.errors import RehomeError
from rehome.execution.access.progress_timeout import ProgressTimeout, pause
from rehome.execution.throttle.keys import own_value, split
from rehome.execution.throttle.ownership.marks import DEFAULT, Marks, is_mark, read_marks
from rehome.execution.throttle.rate_scope import (
    CRUISE_CONTROL_TOPICS,
    default_is_honoured,
    hangs_on_default,
)
from rehome.ledger.base.records import ThrottleEntry, ThrottleState
from rehome.ledger.store import Ledger

VERIFY_TIMEOUT_S = 10.0
"""How long readings may show nothing new: see ``ProgressTimeout``."""
VERIFY_POLL_S = 0.1
SETTLE_S = 0.2
MARKS_PER_REQUEST = 5_000
_SAY_NOTHING_OF_MARKS = TRANSIENT | NO_ANSWER | {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}

Refusals = dict[ConfigResource, BrokerError]
"""Why a resource could not be read or changed. What does not need it goes on."""
ReadConfigs = Callable[
    [ClusterPort, Collection[ConfigResource], Collection[str]],
    tuple[dict[ConfigResource, Mapping[str, ConfigValue]], Refusals],
]


class ThrottleError(RehomeError):
    """A throttle was refused, does not read back as set, or does not stay as it is read."""


def read(
    cluster: ClusterPort, resources: Collection[ConfigResource], keys: Collection[str]
) -> dict[ConfigResource, Mapping[str, ConfigValue]]:
    """Configs of these resources; topics that do not exist are left out.

    :raises ClusterError: a resource could not be read.
    """
    configs_by_resource, unread = read_what_can_be(cluster, resources, keys)
    raise_unread(unread)
    return configs_by_resource


def raise_unread(unread: Mapping[ConfigResource, BrokerError]) -> None:
    """Name the resources that could not be read.

    :raises ClusterError: there is one.
    """
    if unread:
        raise _unread_error(unread)


def _unread_error(unread: Mapping[ConfigResource, BrokerError]) -> ClusterError:
    """Of at least one resource; several are named by what the brokers say of them."""
    groups: dict[BrokerError, list[str]] = {}
    for resource, error in unread.items():
        groups.setdefault(error, []).append(str(resource))
    (error, names), *others = groups.items()
    also = first_names([f"that of {first_names(more)}: {why}" for why, more in others], "; ")
    return ClusterError(
        f"The present throttle of {first_names(names)} cannot be read"
        + (f" ({also})" if also else ""),
        error=error,
        next_step="Rehome changes a throttle only where it knows the one before. Fix what the "
        "brokers name, then try again.",
    )


def read_what_can_be(
    cluster: ClusterPort, resources: Collection[ConfigResource], keys: Collection[str]
) -> tuple[dict[ConfigResource, Mapping[str, ConfigValue]], Refusals]:
    """Configs of these resources less topics that do not exist, and why others are not known."""
    configs_by_resource: dict[ConfigResource, Mapping[str, ConfigValue]] = {}
    unread: Refusals = {}
    for resource, configs in cluster.describe_configs(resources, keys).items():
        if not isinstance(configs, BrokerError):
            configs_by_resource[resource] = configs
        elif configs.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            unread[resource] = configs
    return configs_by_resource, unread


def read_with_marks(
    reading: ReadConfigs,
    ledger_id: str,
    cluster: ClusterPort,
    resources: Collection[ConfigResource],
    keys: Collection[str],
) -> tuple[dict[ConfigResource, Mapping[str, ConfigValue]], Refusals, Marks]:
    """As ``reading`` has it; and the marks, which were the same before and after.

    :raises ClusterError: the brokers' default could not be read.
    :raises ThrottleError: the marks keep changing.
    """
    timeout = ProgressTimeout(VERIFY_TIMEOUT_S)
    before = _marks(cluster, ledger_id)
    while True:
        configs_by_resource, unread = reading(cluster, resources, keys)
        raise_unread({r: error for r, error in unread.items() if r == DEFAULT})
        marks = _marks(cluster, ledger_id)
        if marks == before:
            return configs_by_resource, unread, marks
        before = marks
        timeout.note_answer(progress=False)
        if timeout.exhausted:
            raise _keeps_changing(DEFAULT)


def _marks(cluster: ClusterPort, ledger_id: str) -> Marks:
    marks = read_marks(cluster, ledger_id)
    if isinstance(marks, BrokerError):
        raise _unread_error({DEFAULT: marks})
    return marks


def settle_what_can_be(
    cluster: ClusterPort, resources: Collection[ConfigResource], keys: Collection[str]
) -> tuple[dict[ConfigResource, Mapping[str, ConfigValue]], Refusals]:
    """As :func:`read_what_can_be`, until two readings of each resource agree.

    Any broker may answer, and one under load can be behind the controller for a moment: an
    outdated value must not be journalled as the earlier one. Where a broker does not answer, the
    others' answers are as old as its time limit is long: they are read once more.

    :raises ThrottleError: the configurations keep changing.
    """
    settled: dict[ConfigResource, Mapping[str, ConfigValue]] = {}
    last, unread = read_what_can_be(cluster, resources, keys)
    timeout = ProgressTimeout(VERIFY_TIMEOUT_S)
    timeout.note_answer(progress=True)
    while last:
        pause(SETTLE_S)
        again, unread_now = read_what_can_be(cluster, last.keys(), keys)
        unread |= unread_now
        same = {where: configs for where, configs in again.items() if configs == last[where]}
        agreed = {} if unread_now else same
        settled |= agreed
        timeout.note_answer(progress=bool(agreed) or len(again) < len(last))
        last = {where: configs for where, configs in again.items() if where not in agreed}
        if last and timeout.exhausted:
            raise _keeps_changing(min(last))
    return settled, unread


def _keeps_changing(where: ConfigResource) -> ThrottleError:
    return ThrottleError(
        f"The throttles on the cluster keep changing, as on {where}",
        next_step="See who changes them. When that has ended, trigger a new run.",
    )


def put(
    ledger: Ledger,
    cluster: ClusterPort,
    entries: Sequence[ThrottleEntry],
    changes: Sequence[ConfigChange],
    *,
    marks: Sequence[ConfigChange] = (),
    inherits: bool = False,
    gone: Collection[ThrottleEntry] = (),
    revises: bool = False,
    may_refuse: Collection[ConfigResource] = (),
) -> Refusals:
    """Journal the entries, make the changes, and read them back.

    :param marks: what goes before, as a request of its own. Entries that are intended stay so until
        it is answered: another client may set the same meanwhile. Brokers may refuse it.
    :param inherits: the entries hold what other plans still owe at their keys, too.
    :param gone: those of them that something in flight relies on already, and found gone.
    :param revises: the entries' prior values hold from now on, also where others are journalled.
    :param may_refuse: resources that may refuse it, or to be read afterwards, or not answer; their
        entries stay journalled.
    :returns: those that did, and why.
    :raises ClusterError: a broker did not answer.
    :raises ThrottleError: a change was refused, or does not read back as made.
    """
    if not entries:
        return {}
    ledger.journal_throttles(entries, inherits=inherits, gone=gone, revises=revises)
    alter_default(cluster, marks)
    intended = [entry for entry in entries if not entry.asked_values]
    ledger.mark_throttles([replace(e, state=ThrottleState.JOURNALLED) for e in intended])
    refusing = _change(cluster, changes, may_refuse) if changes else {}
    applied = [entry for entry in entries if entry.resource not in refusing]
    ledger.mark_throttles([replace(entry, state=ThrottleState.APPLIED) for entry in applied])
    return refusing


def alter_marked(
    cluster: ClusterPort, changes: Sequence[ConfigChange]
) -> dict[ConfigResource, BrokerError | None]:
    """Make changes; marks go first, or with the default that they are about.

    A policy of the brokers may refuse marks: then values are set without.
    """
    shared = [change for change in changes if change.resource == DEFAULT]
    rest = [change for change in changes if change.resource != DEFAULT]
    verdicts = alter_default(cluster, shared)
    unmarked = [change for change in shared if not is_mark(change.key)]
    if refuses_marks(verdicts.get(DEFAULT)) and len(unmarked) < len(shared):
        verdicts = cluster.alter_configs(unmarked) if unmarked else {}
    return {**verdicts, **(cluster.alter_configs(rest) if rest else {})}


def alter_default(
    cluster: ClusterPort, changes: Sequence[ConfigChange]
) -> dict[ConfigResource, BrokerError | None]:
    """Change the brokers' default, in parts: controllers refuse requests of 10,000 records. What
    belongs together is in one part: marks of lists alone are as many.
    """
    verdict: BrokerError | None = None
    for at in range(0, len(changes), MARKS_PER_REQUEST):
        part = changes[at : at + MARKS_PER_REQUEST]
        verdict = verdict or cluster.alter_configs(part)[DEFAULT]
    return {DEFAULT: verdict} if changes else {}


def refuses_marks(verdict: BrokerError | None) -> bool:
    """Whether a verdict on the brokers' default may be about a mark."""
    return verdict is not None and verdict.code not in _SAY_NOTHING_OF_MARKS


def _change(
    cluster: ClusterPort, changes: Sequence[ConfigChange], may_refuse: Collection[ConfigResource]
) -> Refusals:
    verdicts = alter_marked(cluster, changes)
    refusals = {resource: error for resource, error in verdicts.items() if error is not None}
    refusing = {resource: refusals.pop(resource) for resource in may_refuse if resource in refusals}
    if refusals:
        text = "; ".join(f"{resource}: {error}" for resource, error in refusals.items())
        left = "What was set is in the ledger, and clear_throttle takes it back."
        if all(error.code in NO_ANSWER for error in refusals.values()):
            raise ClusterError(
                f"The throttle could not be set on {text}",
                state_left=left,
                next_step="Trigger a new run when these brokers answer again.",
            )
        raise ThrottleError(
            f"The throttle was refused on {text}",
            state_left=left,
            next_step="Correct what the broker names, then trigger a new run.",
        )
    made = [c for c in changes if c.resource not in refusing and not is_mark(c.key)]
    return refusing | _wait_until_read_back(cluster, made, may_refuse)


def _wait_until_read_back(
    cluster: ClusterPort, changes: Sequence[ConfigChange], may_refuse: Collection[ConfigResource]
) -> Refusals:
    """Brokers follow the controller within milliseconds; the answer may come from any of them.

    :returns: of the resources that may refuse, those that could not be read, and why.
    """
    missing, timeout = list(changes), ProgressTimeout(VERIFY_TIMEOUT_S)
    keys = {change.key for change in changes}
    refusing: Refusals = {}
    while missing:
        configs_by_resource, unread = read_what_can_be(
            cluster, {change.resource for change in missing}, keys
        )
        raise_unread({where: error for where, error in unread.items() if where not in may_refuse})
        refusing |= unread
        sought = [change for change in missing if change.resource not in unread]
        left = [change for change in sought if not _reads_back(change, configs_by_resource)]
        timeout.note_answer(progress=len(left) < len(missing))
        missing = left
        if missing and timeout.exhausted:
            raise ThrottleError(
                f"The throttle on {missing[0].resource} does not read back as set: "
                f"{missing[0].key} should hold {missing[0].value}",
                state_left="What was set is in the ledger, and clear_throttle takes it back.",
                next_step="See who else changes this configuration, then trigger a new run.",
            )
        pause(VERIFY_POLL_S)
    return refusing


def _reads_back(change: ConfigChange, configs: Configs) -> bool:
    if change.resource not in configs:
        return True  # the topic has gone, and its throttle with it
    current = own_value(change.resource, configs[change.resource].get(change.key))
    if change.operation is ConfigOperation.SET:
        return current == change.value
    there = set(split(change.value)) & set(split(current))
    return there == set(split(change.value)) if _appends(change) else not there


def _appends(change: ConfigChange) -> bool:
    return change.operation is ConfigOperation.APPEND


def goes_by_broker(cluster: ClusterPort) -> bool:
    """Whether each broker is to have rates of its own, and their default none: some may not honour
    it, or Cruise Control would wait for it to go.

    :raises ClusterError: the cluster did not answer.
    """
    if not default_is_honoured(cluster.finalized_features()):
        return True
    return hangs_on_default(cluster.describe_topics(CRUISE_CONTROL_TOPICS))
