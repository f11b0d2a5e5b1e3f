"""Which extra is behind which port of the core: the one place that knows both."""

from __future__ import annotations

from rehome.extras.airflow_metrics import AirflowMetrics
from rehome.extras.kafka_files import FilesForKafka
from rehome.extras.recorded_loads import RecordedLoads
from rehome.fleet import watch_runs
from rehome.notifiers.delivery import SetUpChannels
from rehome.run.ports import Extras

INSTALLED_EXTRAS = Extras(
    channels=SetUpChannels(),
    metrics=AirflowMetrics(),
    heals=watch_runs,
    loads=RecordedLoads(),
    export=FilesForKafka(),
)
