"""A job in a process of Python, which finds Spark by its environment."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from pathlib import Path

import pytest

from rehome.spark.connect_process import ConnectProcess

URL = "sc://127.0.0.1:15002/;user_id=ann;token=abc"
SAYS = """
import json, os, sys, rehome.warehouse, spark_jobs.session
print(json.dumps([os.environ["SPARK_REMOTE"], os.environ["A"], sys.argv[1:]]))
sys.exit(3)
"""


def script(directory: Path, text: str) -> str:
    path = directory / "job.py"
    path.write_text(text)
    return str(path)


@pytest.mark.slow
def test_the_job_gets_address_and_token_by_its_environment_and_finds_rehome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    logged: list[str] = []
    code, said = ConnectProcess(URL).run(
        script(tmp_path, SAYS), ["--a", "b"], {"A": "1"}, logged.append
    )
    assert (code, logged) == (3, [said])
    assert json.loads(said) == [URL, "1", ["--a", "b"]]


def test_a_job_that_is_killed_ends(tmp_path: Path) -> None:
    job = ConnectProcess(URL)
    path = script(tmp_path, "import signal\nprint('begun')\nsignal.pause()")
    found: list[tuple[int, str]] = []
    begun = threading.Event()
    running = threading.Thread(
        target=lambda: found.append(job.run(path, [], {}, lambda _: begun.set()))
    )
    running.start()
    assert begun.wait(60)
    job.kill()
    running.join(60)
    assert found == [(-signal.SIGTERM, "begun")]
    job.kill()


def test_a_server_is_named_by_host_and_port_alone() -> None:
    assert ConnectProcess(URL).address == "127.0.0.1:15002"
    assert ConnectProcess("sc://spark.example/;token=abc").address == "spark.example:15002"


def test_a_server_that_is_not_there_is_known_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        ConnectProcess(f"sc://127.0.0.1:{port}").reach()
    with pytest.raises(OSError, match="refused"):
        ConnectProcess(f"sc://127.0.0.1:{port}").reach()


def test_the_job_runs_by_the_python_of_the_worker(tmp_path: Path) -> None:
    path = script(tmp_path, "import sys\nprint(sys.executable)")
    assert ConnectProcess(URL).run(path, [], dict(os.environ), print) == (0, sys.executable)


@pytest.mark.timeout(60)
def test_a_job_whose_task_is_broken_off_is_ended(tmp_path: Path) -> None:
    """As by a time-out of the task, in mid-read: the job is waited for."""
    as_it_is = {"PYTHONIOENCODING": ":surrogateescape"}
    job = ConnectProcess(URL)
    ends_late = "import signal\nprint('\\udce4 begun', flush=True)\nsignal.pause()\n"
    seen: list[str] = []

    def broken_off(line: str) -> None:
        seen.append(line)
        raise TimeoutError

    with pytest.raises(TimeoutError):
        job.run(script(tmp_path, ends_late), [], as_it_is, broken_off)
    assert seen == ["\ufffd begun"]
