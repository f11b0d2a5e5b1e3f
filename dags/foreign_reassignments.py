"""What any client has in flight: described, followed; where a person asks, cancelled or adopted."""

from __future__ import annotations

from airflow.sdk import DAG

from rehome.domain.run.foreign.foreign_request import ForeignAction
from rehome.links import flow_picture
from rehome.notifiers.run_end import RehomeNotifier
from rehome.params import foreign_params, keep_params_once
from rehome.task_graph import foreign_defaults, foreign_tasks

DOC = f"""
### Reassignments of other clients

{flow_picture("foreign_reassignments")}

- `describe`: the log of `look` describes what is in flight, of any client.
- `follow`: the log of `follow` shows it until all of it has ended.

- `cancel`: a person is asked about each one by name. Approved, they are cancelled, and replicas get
  the order of before where a snapshot shows it.
- `adopt`: a person is asked likewise. Approved, they become a plan of Rehome: under a throttle, on
  the page, followed to its end, and to be slowed down or cancelled as any other.

Choose by `topics` and `brokers`; for describe and follow nothing chosen means all.
"""

with DAG(
    "foreign_reassignments",
    dag_display_name="Reassignments of other clients",
    doc_md=DOC,
    schedule=None,
    is_paused_upon_creation=False,  # it only runs when it is triggered
    params=foreign_params(),
    default_args=foreign_defaults(),
    render_template_as_native_obj=False,
    on_failure_callback=RehomeNotifier("failed"),
    tags=["rehome", "kafka"],
) as dag:
    foreign_tasks(*ForeignAction)
    keep_params_once(dag)
