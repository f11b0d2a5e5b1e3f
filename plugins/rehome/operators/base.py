"""What Rehome's operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rehome.run.causes.operator import RecordedOperator

OF_THE_RUN = "{{ params.get('kafka_config_id', 'kafka_default') }}"
"""The connection that the run's parameters name."""


class ClusterOperator(RecordedOperator):
    """A step on one cluster. Subclasses write :meth:`step`.

    :param kafka_config_id: the Airflow connection of the cluster; by default the parameter of the
        run, or ``kafka_default`` where its DAG has none.
    """

    template_fields: Sequence[str] = ("kafka_config_id",)
    ui_color = "#e8eef5"

    def __init__(self, *, kafka_config_id: str = OF_THE_RUN, **kwargs: Any):
        super().__init__(**kwargs)
        self.kafka_config_id = kafka_config_id
