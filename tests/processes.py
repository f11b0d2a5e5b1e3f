"""Processes that a test starts to have them race, stop or die.

They are forked from a server that has imported what they need: a new interpreter would take longer
over that than over its task.
"""

from __future__ import annotations

import multiprocessing
import os

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["rehome.ledger.store", "tests.execution.killed"])

OTHER_HASHES = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
"""A ``PYTHONHASHSEED`` by which strings hash to something else than in this process."""
