"""What a guard ends, when the process that started it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from local.process.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
OWNER = """
import sys
from pathlib import Path
from local.process.guard import Guard

Guard().spawn([sys.executable, "-c", sys.argv[1], sys.argv[2]], Path(sys.argv[2] + ".log"))
sys.stdin.read()
"""
PARENT = """
import subprocess, sys

code = "import signal, sys; print(1, file=open(sys.argv[1], 'w')); signal.pause()"
subprocess.Popen([sys.executable, "-c", code, sys.argv[1]], start_new_session=True)
"""
"""Ends at once, and leaves a child in a session of its own: so Airflow runs its tasks."""


def test_a_process_whose_parent_has_ended_does_not_outlive_a_caller_that_is_killed(
    tmp_path: Path,
) -> None:
    mark = str(tmp_path / "child")
    caller = subprocess.Popen(
        [sys.executable, "-c", OWNER, PARENT, mark], cwd=ROOT, stdin=subprocess.PIPE
    )
    with caller:
        try:
            wait_until(lambda: Path(mark).exists(), "the child to run")
            wait_until(lambda: len(processes_of(mark)) == 2, "its parent to end")
        finally:
            caller.kill()
    try:
        wait_until(lambda: not processes_of(mark), "the child to end")
    finally:
        for pid in processes_of(mark):
            os.kill(pid, signal.SIGKILL)


def processes_of(mark: str) -> list[int]:
    """Pids of running processes that have this argument: the caller, the parent and its child."""
    found = []
    for process in psutil.process_iter():
        try:
            if mark in process.cmdline():
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found
