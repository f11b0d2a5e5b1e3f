"""`make demo`: a broker of a real cluster is drained by a real Airflow, and everything is proven.

Exits with 0 only when the data moved, every acknowledged message was read back in order, and
nothing was left behind.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx

from local.airflow.standalone import USER
from local.console import Screen
from local.stack import STATE, TOPICS, Stack, alone
from local.workload import Workload
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.configs import ConfigResource
from rehome.domain.time_range import TimeRange
from rehome.execution.progress.progress import footer, size_text, status_text
from rehome.ledger.store import Ledger
from rehome.warehouse import PlanDirectory, Warehouse

THROTTLE_KEYS = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
STAGES = {
    "snapshot": "read brokers, racks, log dirs, topics and replicas",
    "plan": "Spark: gate the snapshot, place replicas, gate the plan",
    "dry_run": "every controller verdict, right, config and disk checked; nothing changed",
    "approve": "no approval was asked for",
    "throttle": "journalled, then set",
    "execute": "the first moves are with the controller",
    "progress": "every copy is complete",
    "clear_throttle": "the earlier values are set again",
    "verify": "a fresh read proves each partition",
    "restore_leaders": "preferred leaders lead",
    "report": "written",
    "verdict": "the plan ended well",
}
RUN_TIMEOUT_S = 900.0
FEWEST_BROKERS = 4


def main() -> int:
    """Run the demo; returns the exit code."""
    for number in (signal.SIGTERM, signal.SIGINT):  # end what was started, too
        signal.signal(number, lambda given, _: sys.exit(128 + given))
    options = parse_options()
    screen = Screen()
    state = options.state.resolve()
    with alone(state):
        return _demonstrate(state, screen, options)


def _demonstrate(state: Path, screen: Screen, options: argparse.Namespace) -> int:
    directory = state / "demo"
    shutil.rmtree(directory, ignore_errors=True)
    screen.title("Rehome drains a broker")
    try:
        with Stack(directory, brokers=options.brokers) as stack:
            ok = Demo(screen, stack, options).run()
    except SystemExit:
        shutil.rmtree(directory)
        screen.say("Ended early; nothing of it is left.", "red")
        raise
    if ok:
        shutil.rmtree(stack.cluster.directory)
    screen.title("Done." if ok else "The demo did not hold what it promises.")
    return 0 if ok else 1


class Demo:
    """The demo on a running stack."""

    def __init__(self, screen: Screen, stack: Stack, options: argparse.Namespace) -> None:
        self.screen = screen
        self.stack = stack
        self.options = options
        self.gateway = ClusterGateway(Connection.from_settings(stack.cluster.client_settings()))
        self.ledger = Ledger.open(stack.ledger_url)

    def run(self) -> bool:
        """Everything from filling the cluster to the proof."""
        screen, options = self.screen, self.options
        screen.say(f"Kafka is up: {len(self.stack.cluster.broker_ids)} brokers in two data centres")
        workload = self.stack.create_topics()
        started = time.monotonic()
        count = workload.fill(options.megabytes * 1_000_000, TOPICS.weights)
        took = time.monotonic() - started
        screen.say(f"{count:,} messages, {options.megabytes} MB, produced in {took:.1f} s")
        with workload:
            screen.say("an idempotent producer (acks=all) and a consumer keep running")
            screen.say("Airflow starts …")
            self.stack.airflow.start()
            self._say_where_the_page_is()
            run = self._trigger()
            state = self._follow(run)
        return self._prove(state, workload)

    def _trigger(self) -> str:
        conf = {
            "action": "drain",
            "brokers": [self.options.drain],
            "throttle": self.options.throttle,
        }
        self.screen.title(
            f"Drain broker {self.options.drain}, at most {size_text(self.options.throttle)}/s"
        )
        run = self.stack.airflow.api.trigger("reassign_partitions", conf)
        self.screen.say("first a snapshot, then Spark starts to check it and to plan …")
        return run

    def _follow(self, run: str) -> str:
        """Show each stage as it ends, and the progress table, until the run has ended."""
        seen: dict[str, str] = {}
        deadline = time.monotonic() + RUN_TIMEOUT_S
        with self.screen.live():
            while time.monotonic() < deadline:
                state = self._look(run, seen)
                self._table()
                if state in ("success", "failed"):
                    return state
                time.sleep(1.0)
        return f"still running after {RUN_TIMEOUT_S:g} s"

    def _look(self, run: str, seen: dict[str, str]) -> str:
        """The run's state, with what has changed shown; "" when the API is too busy to say."""
        try:
            state = self.stack.airflow.api.run_state("reassign_partitions", run)
            for task, status in self._changes(run, seen):
                self._stage(task, status)
        except httpx.TransportError:
            return ""
        return state

    def _changes(self, run: str, seen: dict[str, str]) -> Iterator[tuple[str, str]]:
        states = self.stack.airflow.api.task_states("reassign_partitions", run)
        for task in STAGES:
            state = states.get(task) or ""
            if state != seen.get(task) and state in ("success", "failed", "upstream_failed"):
                yield task, state
            seen[task] = state

    def _stage(self, task: str, state: str) -> None:
        if state == "success":
            self.screen.say(f"{task:16} {self._detail(task)}")
        else:
            self.screen.say(f"{task:16} {state}", "red")

    def _detail(self, task: str) -> str:
        plan = self._plan_directory()
        if task == "plan" and plan is not None:
            summary = plan.read_json("summary.json")
            return (
                f"{summary['replica_moves']} replicas, {size_text(summary['bytes_to_move'])} to "
                f"move (no plan moves less than {size_text(summary['lower_bound_bytes'])})"
            )
        if task == "dry_run" and plan is not None:
            return f"{STAGES[task]}; {self._predicted(plan)} predicted"
        return STAGES[task]

    def _table(self) -> None:
        plans = self.ledger.plans()
        if not plans or not plans[0].state.active:
            return
        newest = self.ledger.samples(plans[0].plan_id, newest=1)
        if not newest:
            return
        statuses = self.ledger.latest(plans[0].plan_id).values()
        rows = [
            (*map(str, status.replica), status_text(status), size_text(status.size_bytes or 0))
            for status in statuses
        ]
        self.screen.progress(rows, footer(newest[0]))

    def _plan_directory(self) -> PlanDirectory | None:
        plans = self.ledger.plans()
        return Warehouse(self.stack.warehouse_uri).plan(plans[0].plan_id) if plans else None

    def _prove(self, state: str, workload: Workload) -> bool:
        self.screen.title("The proof")
        check = self.screen.check
        checks = [check(state == "success", f"the DAG run ended: {state}")]
        plan = self._plan_directory()
        if plan is None:
            return check(False, "no plan was made")
        record = self.ledger.plans()[0]
        open_entries = self.ledger.throttles(cluster_id=record.cluster_id, open_only=True)
        checks.append(check(record.state == "done", f"plan {record.plan_id} is {record.state}"))
        checks.append(self._check_empty())
        checks.append(self._check_racks())
        newest = self.ledger.samples(record.plan_id, newest=1)
        if newest and record.started_at and record.ended_at:
            actual = (record.ended_at - record.started_at).total_seconds()
            self.screen.say(
                f"moved {size_text(newest[0].bytes_done)} in {actual:.0f} s, "
                f"predicted {self._predicted(plan)}"
            )
        left = self._throttles_left()
        checks.append(check(not left, "throttles left: " + (", ".join(left) or "none")))
        checks.append(check(not open_entries, f"pending cleanup: {len(open_entries) or 'none'}"))
        checks.append(self._check_messages(workload))
        report = plan.uri + "/report.html"
        checks.append(check(plan.exists("report.html"), f"report: {report}"))
        self._say_where_the_page_is()
        if sys.stdin.isatty():
            self.screen.say("It is there until you press Enter.")
            sys.stdin.readline()
        else:
            self.screen.say("It ends with the demo; `make up` keeps one running.")
        return all(checks)

    def _say_where_the_page_is(self) -> None:
        airflow = self.stack.airflow
        self.screen.say(
            f"The page: {airflow.url}/plugin/reassignments (user {USER}, password "
            f"{airflow.password})"
        )

    def _predicted(self, plan: PlanDirectory) -> TimeRange:
        return TimeRange(**plan.read_json("dry_run.json")["predicted"])

    def _check_empty(self) -> bool:
        drained = self.options.drain
        answer = self.gateway.describe_log_dirs([drained])
        hosted = sum(len(log_dir.replicas) for log_dir in answer.value)
        empty = hosted == 0 and not answer.missing
        return self.screen.check(empty, f"broker {drained} hosts {hosted} replicas")

    def _check_racks(self) -> bool:
        broken = 0
        for topic in self.gateway.describe_topics().values():
            for partition in topic.partitions.values():
                centres = {self.stack.cluster.racks[b].split("/")[1] for b in partition.replicas}
                broken += len(centres) < min(2, len(partition.replicas))
        return self.screen.check(not broken, f"partitions within one data centre: {broken}")

    def _throttles_left(self) -> list[str]:
        resources = [
            ConfigResource.cluster_default(),
            *(ConfigResource.broker(broker) for broker in self.stack.cluster.broker_ids),
            *(ConfigResource.topic(topic) for topic in self.gateway.describe_topics()),
        ]
        left = []
        for resource, values in self.gateway.describe_configs(resources, THROTTLE_KEYS).items():
            if not isinstance(values, dict):
                left.append(f"{resource} could not be read: {values}")
                continue
            left += [
                f"{resource.name or 'cluster'} {key}"
                for key, value in values.items()
                if value.source.startswith("DYNAMIC") and value.value
            ]
        return left

    def _check_messages(self, workload: Workload) -> bool:
        proof = workload.read_back()
        for problem in proof.problems:
            self.screen.say(problem, "red")
        return self.screen.check(
            proof.ok,
            f"{proof.acknowledged:,} messages acknowledged, {proof.read:,} read back "
            f"in order per partition ({workload.consumed:,} seen live by the consumer)",
        )


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line asks for."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--brokers", type=int, default=4, help="number of brokers (default 4)")
    parser.add_argument("--drain", type=int, default=4, help="the broker to drain (default 4)")
    parser.add_argument("--megabytes", type=int, default=320, help="messages to fill with, MB")
    parser.add_argument(
        "--throttle", type=int, default=10_000_000, help="bytes per second and broker"
    )
    parser.add_argument("--state", type=Path, default=STATE, help="where it runs")
    options = parser.parse_args(arguments)
    if options.brokers < FEWEST_BROKERS:
        parser.error(
            f"--brokers {options.brokers}: the demo needs {FEWEST_BROKERS} or more, so that three "
            "replicas still fit when one broker is drained"
        )
    if not 1 <= options.drain <= options.brokers:
        parser.error(f"--drain {options.drain}: the brokers are 1 to {options.brokers}")
    for name in ("megabytes", "throttle"):
        if getattr(options, name) <= 0:
            parser.error(f"--{name} must be positive")
    return options


if __name__ == "__main__":
    sys.exit(main())
