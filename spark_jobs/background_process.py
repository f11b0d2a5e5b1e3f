"""Work in a process of its own, while this one starts Spark and waits for it."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from typing import TypeVar

Found = TypeVar("Found")


@contextmanager
def in_background(work: Callable[[], Found]) -> Iterator[Callable[[], Found]]:
    """Let a new process do the work; what this yields waits for the answer.

    The process ends with the context, whatever it has come to, and with this process, however that
    ends: an answer that is not waited for is never known. It is spawned, not forked: threads,
    clients of object stores and JVMs of this process do not survive a fork.

    :param work: can be pickled, and so can its answer. What it raises is raised to the caller that
        waits.
    :raises RuntimeError: to the caller that waits, when the process has ended without an answer.
    """
    spawning = get_context("spawn")
    mine, theirs = spawning.Pipe(duplex=False)
    process = spawning.Process(target=_answer, args=(theirs, work), daemon=True)
    process.start()
    theirs.close()  # the only writer left is the process: its end is the end of the pipe

    def wait() -> Found:
        try:
            outcome, error = mine.recv()
        except EOFError:
            process.join()
            raise RuntimeError(
                f"The background process has ended with {process.exitcode} before it was done."
            ) from None
        if error is not None:
            raise error
        answer: Found = outcome
        return answer

    try:
        yield wait
    finally:
        process.kill()
        process.join()
        mine.close()


def _answer(to: Connection, work: Callable[[], object]) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        outcome, raised = work(), None
    except Exception as error:  # noqa: BLE001 - raised where the answer is waited for
        error.add_note(f"In the background process:\n{traceback.format_exc()}")
        outcome, raised = None, error
    to.send((outcome, raised))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
