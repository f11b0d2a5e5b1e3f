"""A plan as files for Kafka's own tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome.run.ports import ExportedFiles, FileExport

if TYPE_CHECKING:
    from rehome.cluster.interface.port import ClusterPort
    from rehome.domain.plan.plan import Plan
    from rehome.domain.request.request import ReassignmentRequest


class FilesForKafka(FileExport):
    """For ``kafka-reassign-partitions`` and ``kafka-configs``."""

    def of(
        self,
        plan: Plan,
        request: ReassignmentRequest,
        rate_bytes_per_s: int,
        most_partitions: int,
        cluster: ClusterPort,
    ) -> ExportedFiles | None:
        """By the throttles that are on the cluster now."""
        from rehome.execution.export import current_throttles, export

        current = current_throttles(plan, cluster)
        return export(plan, request, rate_bytes_per_s, most_partitions, current)
