"""What something costs the processor, on whatever machine, however busy it is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

_MEGABYTE = json.dumps(
    [{"topic": "t", "partition": n, "replicas": [1, 2, 3]} for n in range(18_000)]
)


def in_megabytes_of_json(work: Callable[[], object]) -> float:
    """The processor time of something, as a multiple of that of parsing a megabyte of JSON, which
    is measured beside it: what grows with the square of a megabyte is thousands.
    """
    parsing = min(_seconds(lambda: json.loads(_MEGABYTE)) for _ in range(3))
    return _seconds(work) / parsing


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
