"""Explain a plan: why a partition or a broker gets what it gets, and why nothing else.

    python spark_jobs/explain.py --plan WAREHOUSE/plans/ID --partition orders-7
    python spark_jobs/explain.py --plan WAREHOUSE/plans/ID --broker 3
    python spark_jobs/explain.py --plan WAREHOUSE/plans/ID --prices

Reads the plan's directory and the snapshot it was made on, from the same warehouse unless
--snapshot says where it lies now; no cluster, no ledger, no Spark. Traffic that came from a
history is judged with --history, by what that history knows today. Exits with 2 when what is asked
for is not there.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, "") and (Path(__file__).resolve().parent.parent / "include").is_dir():
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # run by hand, no zip shipped
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "include"))

from rehome.domain.kafka import TopicPartition
from rehome.domain.request.parse_request import parse_request
from rehome.domain.resources import RESOURCE_NAMES
from rehome.domain.text import join_names
from rehome.errors import InvalidRequestError, RehomeError
from rehome.load_history.known_rates import Demands, LoadHistory
from rehome.planning.explain.explainer import Explainer
from rehome.planning.explain.text import broker_text, partition_text, prices_text
from rehome.planning.planner import target_prices_of
from rehome.warehouse import PlanDirectory, Warehouse, read_snapshot

CANNOT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the explanations that are asked for; returns the exit code."""
    options = _options(arguments)
    try:
        explainer = _explainer(options)
        texts = [
            partition_text(explainer.partition(_parse_partition(name)))
            for name in options.partition
        ]
        texts += [broker_text(explainer.broker(broker)) for broker in options.broker]
        texts += [prices_text(explainer.prices(target_prices_of))] if options.prices else []
    except RehomeError as error:
        print(error, file=sys.stderr)
        return CANNOT
    unmeasured = explainer.unmeasured_resources()
    if unmeasured:
        names = join_names([RESOURCE_NAMES[resource] for resource in unmeasured])
        texts.append(f"Not judged, for the snapshot does not have them per partition: {names}.")
    print("\n\n".join(texts))
    return 0


def _explainer(options: argparse.Namespace) -> Explainer:
    directory = PlanDirectory(options.plan)
    plan = directory.load()
    # The window may have closed meanwhile: it plays no part in where replicas go.
    request = parse_request(directory.read_json("request.json"), recorded=True)
    warehouse = directory.uri.rsplit("/", 2)[0]
    snapshot = read_snapshot(options.snapshot or f"{warehouse}/snapshots/{plan.summary.snapshot}")
    if options.history is not None:
        demands = Demands(window_days=options.history_days, min_hours=options.min_history_hours)
        history = LoadHistory.read(Warehouse(options.history), snapshot, demands)
        snapshot = history.with_rates(snapshot)
    return Explainer(snapshot, request, plan)


def _parse_partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    if not topic or not number.isdigit():
        raise InvalidRequestError([f"{text!r} is no partition: write topic-number."])
    return TopicPartition(topic, int(number))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plan", required=True, help="the plan's directory, any URI")
    parser.add_argument("--snapshot", help="URI of the snapshot, where it has been moved")
    parser.add_argument("--history", help="URI of the warehouse whose rollups hold the traffic")
    parser.add_argument("--history-days", type=int, default=7)
    parser.add_argument("--min-history-hours", type=float, default=24.0)
    parser.add_argument("--partition", action="append", default=[], help="topic-number")
    parser.add_argument("--broker", action="append", default=[], type=int, help="its id")
    parser.add_argument(
        "--prices", action="store_true", help="what each target costs: may plan again without it"
    )
    options = parser.parse_args(arguments)
    if not (options.partition or options.broker or options.prices):
        parser.error("what is to be explained? give --partition, --broker or --prices")
    return options


if __name__ == "__main__":
    sys.exit(main())
