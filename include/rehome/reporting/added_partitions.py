"""The report on new partitions: one HTML file, no external resources."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rehome.domain.request.partition_counts import AddedPartitions
from rehome.domain.run.findings import Finding


def partitions_report(
    plan: AddedPartitions, findings: Collection[Finding], *, created: bool = False
) -> str:
    """The report as HTML. Names from the cluster are escaped, whatever they hold.

    :param findings: of the dry run.
    :param created: the partitions are there, and were read back.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    leads = [row[0] for row in plan.assignments.values()]
    holds = [broker for row in plan.assignments.values() for broker in row]
    return environment.get_template("partitions.html.j2").render(
        plan=plan,
        findings=findings,
        created=created,
        brokers=[(broker, holds.count(broker), leads.count(broker)) for broker in sorted({*holds})],
    )
