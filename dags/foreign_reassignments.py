"""What any client has in flight: described, followed; where a person asks, cancelled or adopted."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import DAG

from rehome.links import flow_picture
from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.approval.without_plan import APPROVE_TASK
from rehome.operators.completion.report import WriteReportOperator
from rehome.operators.completion.verify import VerifyReassignmentOperator
from rehome.operators.foreign.adopt import AdoptionVerdictOperator, AdoptReassignmentsOperator
from rehome.operators.foreign.approve import ApproveForeignOperator
from rehome.operators.foreign.cancel import CancelForeignOperator
from rehome.operators.foreign.look import FollowReassignmentsSensor, LookAtReassignmentsOperator
from rehome.operators.throttle import ClearThrottleOperator
from rehome.params import foreign_params, keep_params_once
from rehome.sensors.reassignment import ReassignmentSensor
from rehome.task_graph import CLEANING_POOL
from rehome.task_texts import task

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
    default_args={"retries": 1, "retry_delay": timedelta(seconds=10)},
    render_template_as_native_obj=False,
    on_failure_callback=RehomeNotifier("failed"),
    tags=["rehome", "kafka"],
) as dag:
    look = LookAtReassignmentsOperator(**task("look"))
    follow = FollowReassignmentsSensor(**task("follow"))
    approve = ApproveForeignOperator(**task(APPROVE_TASK))
    cancel = CancelForeignOperator(**task("cancel"))
    look >> follow
    look >> approve >> cancel

    adopt = AdoptReassignmentsOperator(**task("adopt"))
    progress = ReassignmentSensor(**task("progress"))
    clear_throttle = ClearThrottleOperator(**task("clear_throttle"), retries=5, pool=CLEANING_POOL)
    verify = VerifyReassignmentOperator(**task("verify"))
    report = WriteReportOperator(**task("report"), pool=CLEANING_POOL)
    verdict = AdoptionVerdictOperator(**task("verdict"), retries=0, pool=CLEANING_POOL)
    approve >> adopt >> progress >> clear_throttle
    # Teardowns succeed also after a failure: without its edge from progress, verify would run.
    progress >> verify
    clear_throttle >> report
    clear_throttle >> verify >> report >> verdict
    clear_throttle.as_teardown(setups=adopt)
    report.as_teardown()
    verdict.as_teardown(on_failure_fail_dagrun=True)
    keep_params_once(dag)
