"""What Airflow's UI shows about the DAGs that are made for each cluster."""

from __future__ import annotations

from rehome.links import flow_picture

COLLECT_SNAPSHOTS = f"""
### Collect snapshots

{flow_picture("collect_snapshots")}

Takes a snapshot of a cluster on a schedule, and adds it to the history that plans read.
"""

SWEEP_THROTTLES = f"""
### Sweep throttles

{flow_picture("sweep_throttles")}

Takes back throttles that could not be taken back in time: of dead brokers, killed runs.

Its schedule works through the connection `kafka_default`, and there is such a DAG for each other
cluster of the clusters file; elsewhere, trigger it with that `kafka_config_id`. It sends an alert
about each plan whose run sends no heartbeat. It lists throttles that no plan has set in the
log, and leaves them alone.
"""

REBALANCE_IN_WINDOW = f"""
### Rebalance in a window

{flow_picture("rebalance_in_window")}

A run starts when a window opens, and has nothing in flight when it closes. What does not fit
waits: the next window resumes the same plan, unless another client has moved its partitions
meanwhile; then that plan is given up. A plan that a person has paused waits for that person.
A plan of a dry run that was handed over to the next window, by a person or to heal a finding, comes
before one of its own. With `own_plan: false` in the clusters file, or without one with
`REHOME_WINDOW_OWN_PLAN=false`, a window makes none, and its run ends at once where no plan waits.
While a window is open, and always for a cluster without windows, `watch_clusters` starts runs of
this DAG to heal what its rules say.

Windows are set by `REHOME_WINDOW_CRON`, `REHOME_WINDOW_DURATION_S` and `REHOME_WINDOW_TIMEZONE`
in the environment, or for each cluster in the clusters file, which then counts alone. A run
triggered by hand gets the window that was opened last, and is refused when that has closed.
"""
