"""What a dry run says, for people and as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates
from rehome.domain.run.findings import Finding, Severity
from rehome.domain.text import bytes_text, count_text
from rehome.domain.time_range import TimeRange
from rehome.execution.dry_run.typed_finding import TypedFinding
from rehome.execution.dry_run.words.worded import put_in_words
from rehome.execution.estimate.airflow_times import ENOUGH_RUNS


@dataclass(frozen=True, slots=True)
class DryRunResult:
    """Everything a dry run found. Bytes and seconds, by sizes and leaders as they are now.

    :param checks: the checks that were made, in order; those without findings passed.
    :param bytes_to_move: between brokers; ``log_dir_bytes``: between log dirs of a broker.
    :param rate_bytes_per_s: the throttle that was tried, per broker and direction.
    :param rate_cause: why it is this one; "" = it was asked for.
    :param predicted: time from the start of the plan to its end; None = it would never end.
    :param runs_measured: runs that the reaction of Airflow in it was measured in; of fewer than
        ``ENOUGH_RUNS``, what the settings expect counts, too.
    :param unthrottled: whether no throttle is to be set; the rate is then what a broker can take.
    :param settings: the caps, broker sets and targets of the cluster that counted then
        (``ClusterValues.counting``); None = what the plan was made with is not known.
    :param own_rates: the throttles of brokers that have one of their own, as they were tried.
    """

    plan_id: str
    plan_hash: str
    checks: tuple[str, ...]
    findings: tuple[Finding, ...]
    partitions: int = 0
    bytes_to_move: int = 0
    log_dir_bytes: int = 0
    rate_bytes_per_s: int = 0
    rate_cause: str = ""
    predicted: TimeRange | None = None
    runs_measured: int = 0
    unthrottled: bool = False
    settings: Mapping[str, Any] | None = None
    own_rates: BrokerRates = NO_OWN_RATES

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings that stop the run."""
        return tuple(item for item in self.findings if item.severity is Severity.ERROR)

    @property
    def ok(self) -> bool:
        """Whether nothing stops the run."""
        return not self.errors

    def of(self, check: str) -> tuple[Finding, ...]:
        """What one check found."""
        return tuple(item for item in self.findings if item.check == check)

    def and_of(self, check: str, check_findings: Iterable[TypedFinding]) -> DryRunResult:
        """With another check, and what it found."""
        findings = (*self.findings, *map(put_in_words, check_findings))
        return replace(self, checks=(*self.checks, check), findings=findings)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types, for dry_run.json."""
        return {"ok": self.ok, **asdict(self), "own_rates": self.own_rates.to_json()}


def describe(result: DryRunResult) -> str:
    """A table of the checks with their outcome, each finding below its check."""
    verdict = "may run" if result.ok else "is refused"
    size = f"{count_text(result.partitions, 'partition')}, {_sizes(result)}"
    lines = [
        f"Dry run: plan {result.plan_id} {verdict}; nothing was changed.",
        f"  {size} {_pace(result)}: {_time(result)}",
    ]
    if result.rate_cause:
        lines.append(f"  throttle auto: {result.rate_cause}")
    lines += [f"  throttle by broker: {line}" for line in result.own_rates.lines()]
    width = max(map(len, result.checks), default=0)
    for check in result.checks:
        findings = result.of(check)
        lines.append(f"  {check.ljust(width)}  {_outcome(findings)}".rstrip())
        lines += [f"    {item}" for item in findings]
    return "\n".join(lines)


def _pace(result: DryRunResult) -> str:
    rate = f"{bytes_text(result.rate_bytes_per_s)}/s per broker"
    return f"without a throttle, if {rate} are copied" if result.unthrottled else f"at {rate}"


def _sizes(result: DryRunResult) -> str:
    if not result.log_dir_bytes:
        return bytes_text(result.bytes_to_move)
    within = f"{bytes_text(result.log_dir_bytes)} between log dirs"
    return f"{bytes_text(result.bytes_to_move)} and {within}" if result.bytes_to_move else within


def _time(result: DryRunResult) -> str:
    if result.predicted is None:
        return "it would never end as things stand, see below"
    runs = result.runs_measured
    measured = [f"measured in {count_text(runs, 'run')}"] if runs else []
    expected = ["as the settings expect"] if runs < ENOUGH_RUNS else []
    return f"{result.predicted} (Airflow's reaction: {' and '.join(measured + expected)})"


def _outcome(findings: tuple[Finding, ...]) -> str:
    severities = {item.severity for item in findings}
    if Severity.ERROR in severities:
        return "refused"
    return "warning" if Severity.WARNING in severities else "passed"
