"""An hour of random plans and faults, and what is left of them: `make soak`.

    python -m tests.e2e.soak.run [--minutes 60] [--seed 1] [--keep]

Writes benchmarks/results/soak.json and the table in docs/reliability.md. Ends with an error if the
judge finds anything.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import sys
import tempfile
import time
from pathlib import Path

from local.process.waiting import wait_until
from tests.e2e.soak.drive import Drive
from tests.e2e.soak.ground import Ground, prepared
from tests.e2e.soak.judge import Facts, judged
from tests.e2e.soak.result import RESULT, Soaked, commit_now, counts_of, growth_of, result_of, write
from tests.e2e.soak.samples import COMPONENTS, Sampler, bytes_below, memory_of

CALM = 5 / 12
"""Part of the time in which components of Airflow may be ended: of an hour, 25 minutes."""


def soaked(ground: Ground, chance: random.Random, minutes: float) -> Soaked:
    """Run, settle, and read what there is in the end."""

    def sizes() -> dict[str, int]:
        return {
            "ledger": ground.ledger.size_bytes(),
            "warehouse": bytes_below(ground.warehouse),
            "airflow": ground.metadata.size_bytes(),
        }

    with ground.traffic:
        # Kafka makes the topic of consumers' offsets, with its settings, for the first of them.
        wait_until(lambda: ground.traffic.consumed, "the consumer", 240, 1.0)
        wait_until(ground.ledger.is_made, "the first task to make the ledger", 300, 1.0)
        before = ground.outside.settings()
        began = time.monotonic()
        drive = Drive(ground, chance, began + minutes * 60, began + minutes * 60 * CALM)
        sampler = Sampler(lambda: ground.airflow.pids, sizes, lambda: counts_of(ground))
        with sampler:
            drive.go()
        wall_s = time.monotonic() - began
        drive.settle()
    read = ground.traffic.read_back()
    facts = Facts(
        lost=read.lost,
        unread=tuple(text for text in read.problems if "lost" in text),
        settings_before=before,
        settings=ground.outside.settings(),
        owner=ground.owner,
        replicas=ground.outside.partitions(),
        factors=ground.factors,
        brokers=frozenset(ground.cluster.broker_ids),
        in_flight=ground.outside.in_flight(),
        plans={plan.plan_id: plan.state for plan in ground.ledger.plans()},
        owed=tuple(ground.ledger.owed()),
        held=tuple(ground.ledger.held()),
        runs=tuple(drive.runs()),
        memory=tuple(memory_of(sampler.samples, name) for name in COMPONENTS),
        growth=growth_of(sampler.samples),
    )
    return Soaked(facts, judged(facts), read, sampler, drive, wall_s)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, help="where everything is, and stays")
    parser.add_argument("--result", type=Path, default=RESULT)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rehome-soak-") as made:
        chance, commit = random.Random(asked.seed), commit_now()
        directory = (asked.directory or Path(made)).resolve()
        with prepared(directory, chance) as ground:
            found = soaked(ground, chance, asked.minutes)
            kept = [dataclasses.asdict(sample) for sample in found.sampler.samples]
            (directory / "samples.json").write_text(json.dumps(kept))
            result = result_of(found, ground, asked.minutes, asked.seed, commit)
    write(result, asked.result)
    print(json.dumps(result["wrong"], indent=1))
    return 1 if result["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
