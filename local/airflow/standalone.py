"""A whole Airflow on this machine, loopback only: scheduler, triggerer, DAG processor, API.

The demo, `make up` and the tests share it. It is as users have it: what is set is where things are,
who may log in, the *Test* button, and its size for a small machine. Its components are started one
by one, which costs some seconds less than `airflow standalone`. Nothing of them outlives the
process that started them (see guard.py); each is ended with its whole process group.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import psutil

from local.airflow.api import AirflowApi
from local.process.guard import Guard
from local.process.ports import free_ports
from local.process.waiting import wait_until
from rehome.airflow_settings import AirflowSettings
from rehome.private_files import folder

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 420.0
STOP_TIMEOUT_S = 60.0
USER = "admin"
RARELY_PARSED = {
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",
    "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "240",
}
"""For tests, which change no DAG file: parsing costs some CPU seconds a file. The timeout, which
holds for the callbacks of runs, too, is for a busy machine; of a file whose process was killed no
DAG is found until it is parsed again."""
_NO_LOG_SERVER = dict.fromkeys(("scheduler", "triggerer"), ("--skip-serve-logs",))
"""Log servers listen on all addresses, whatever is set, and the API server finds the logs here."""


class AirflowStartError(RuntimeError):
    """Airflow did not come up; carries the tail of its log."""


@dataclass(frozen=True)
class Sources:
    """Where an Airflow has Rehome from: this checkout, or an environment that has the package.

    :param python: the interpreter of all its processes.
    :param python_path: what they find besides its packages.
    :param command: what its interpreter runs as ``rehome``.
    :param env: what Airflow's processes get besides.
    """

    python: str = sys.executable
    python_path: tuple[Path, ...] = (ROOT, ROOT / "plugins")
    dags: Path = ROOT / "dags"
    plugins: Path = ROOT / "plugins"
    command: Path = ROOT / "bin" / "rehome"
    env: Mapping[str, str] = field(default_factory=dict)


CHECKOUT = Sources()


@dataclass(frozen=True)
class Component:
    """A process of Airflow.

    :param words: what ``airflow`` is asked to run.
    :param env: what it gets besides, as on a machine of its own.
    """

    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)


COMPONENTS = {
    name: Component((name, *_NO_LOG_SERVER.get(name, ())))
    for name in ("scheduler", "dag-processor", "api-server", "triggerer")
}


class AirflowStandalone:
    """All of Airflow's components with this project's dags and plugins, on free loopback ports.

    :param home: AIRFLOW_HOME; made where it is missing, kept afterwards.
    :param settings: connections, pools and variables to import at the start.
    :param env: further environment, ``REHOME_*`` for one.
    :param dags: the DAGs to wait for at the start.
    :param before: arguments of Python that are run when the database is there, before anything
        that serves; its environment is Airflow's.
    :param sources: where it has Rehome from.
    :param path: what its addresses begin with, as behind a proxy: ``/airflow``.
    :param components: its processes by name.

    ``api`` asks it what a person asks in the UI.
    """

    def __init__(
        self,
        home: Path,
        *,
        settings: AirflowSettings | None = None,
        env: Mapping[str, str] | None = None,
        dags: Collection[str] = ("reassign_partitions",),
        before: Sequence[str] = (),
        sources: Sources = CHECKOUT,
        path: str = "",
        components: Mapping[str, Component] = COMPONENTS,
    ) -> None:
        self.home = home
        self.settings = settings or AirflowSettings.read()
        self.dags = tuple(dags)
        self.password = secrets.token_urlsafe(12)
        self._more_env = dict(env or {})
        self._before = [*before]
        self._sources = sources
        self._path = path
        self._components = components
        self._port, *self._other_ports = free_ports(3)
        self.api = AirflowApi(self.url, USER, self.password)
        self._guard: Guard | None = None
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> AirflowStandalone:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where UI and API are."""
        return f"http://127.0.0.1:{self._port}{self._path}"

    @property
    def log_file(self) -> Path:
        """What Airflow's processes print."""
        return self.home / "standalone.log"

    def start(self) -> None:
        """Make the database, import the settings, start, and wait until it serves the DAGs.

        :raises AirflowStartError: with the tail of the log.
        """
        folder(self.home, 0o700)
        passwords = self.home / "passwords.json"
        passwords.touch(mode=0o600)
        passwords.write_text(json.dumps({USER: self.password}))
        self._guard = Guard()
        try:
            self._prepare()
            self._launch()
            self._await_dags()
        except (TimeoutError, subprocess.CalledProcessError) as error:
            self.stop()
            raise AirflowStartError(f"{error}\n{self.log_tail()}") from None
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process of it. The home directory stays. Idempotent."""
        self.api.close()
        self._end_all()
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def restart(self) -> None:
        """End what still runs and start again, on the same ports, with the same database."""
        assert self._guard is not None, "Airflow is not running"
        self._end_all()
        self._launch()
        self._await_dags()

    def revive(self) -> None:
        """Start the components that have ended; the others, and what they do, go on meanwhile."""
        assert self._guard is not None, "Airflow is not running"
        self._launch()

    def kill(self) -> None:
        """SIGKILL everything, running tasks included, as when a machine dies."""
        assert self._guard is not None, "Airflow is not running"
        self._guard.close()
        self._guard = Guard()
        self._started.clear()

    def kill_component(self, name: str) -> None:
        """SIGKILL a component and all that it has started: a scheduler's running tasks, too."""
        _kill_family(psutil.Process(self._started[name].pid))

    def component_of(self, pid: int) -> str:
        """Which component has started a process; "" = none of those that run."""
        above = {process.pid for process in psutil.Process(pid).parents()} | {pid}
        found = (name for name, each in self._started.items() if each.pid in above)
        return next(found, "")

    def missing_components(self) -> set[str]:
        """Components whose process is gone."""
        return {name for name in self._components if not self._runs(name)}

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the components that run, by their names."""
        return {name: self._started[name].pid for name in self._components if self._runs(name)}

    def _end_all(self) -> None:
        _end_groups(self._started.values())
        for process in self._started.values():
            if self._guard is not None:
                self._guard.reap(process, STOP_TIMEOUT_S)
        self._started.clear()

    def _runs(self, name: str) -> bool:
        return name in self._started and self._started[name].poll() is None

    def log_tail(self, lines: int = 30) -> str:
        """The last lines of what Airflow's processes printed."""
        if not self.log_file.exists():
            return "(no log)"
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def environment(self) -> dict[str, str]:
        """The environment of every process of this Airflow."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name != "PYTHONDONTWRITEBYTECODE" and not name.startswith(("AIRFLOW", "REHOME_"))
        }
        path = f"{Path(self._sources.python).parent}:{os.environ.get('PATH', os.defpath)}"
        worker_logs, trigger_logs = map(str, self._other_ports)
        return {
            **inherited,
            "PATH": path,
            "PYTHONPATH": ":".join(map(str, self._sources.python_path)),
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self._sources.dags),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(self._sources.plugins),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__FERNET_KEY": self._secret("fernet"),
            "AIRFLOW__CORE__PARALLELISM": "8",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.home / "passwords.json"),
            "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
            "AIRFLOW__API_AUTH__JWT_SECRET": self._secret("tokens"),
            "AIRFLOW__API__SECRET_KEY": self._secret("sessions"),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self._port),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": worker_logs,
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": trigger_logs,
            # Parsing costs some CPU seconds a file: often enough while a DAG is edited.
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "60",
            "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
            **self._sources.env,
            **self._more_env,
        }

    def _secret(self, name: str) -> str:
        """A key that all processes of this Airflow have to share; made once per home."""
        path = self.home / f"{name}.key"
        if not path.exists():
            path.touch(mode=0o600)
            path.write_text(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())
        return path.read_text()

    def _prepare(self) -> None:
        importing = [str(self._sources.command), "settings", "import"]
        with ExitStack() as stack:
            settings = self.home / "settings.json"
            stack.callback(settings.unlink, missing_ok=True)
            settings.touch(mode=0o600)
            settings.write_text(json.dumps(self.settings.to_json()))
            output = stack.enter_context(self.log_file.open("ab"))
            for arguments in (
                [*importing, "--migrate", "--overwrite", str(settings)],
                self._before,
            ):
                if arguments:
                    subprocess.run(
                        [self._sources.python, *arguments],
                        cwd=self.home,
                        env=self.environment(),
                        stdout=output,
                        stderr=subprocess.STDOUT,
                        timeout=START_TIMEOUT_S,
                        check=True,
                    )

    def _launch(self) -> None:
        """Start each component that does not run."""
        assert self._guard is not None
        for name in sorted(self.missing_components()):
            component = self._components[name]
            argv = [self._sources.python, "-m", "airflow", *component.words]
            env = {**self.environment(), **component.env}
            self._started[name] = self._guard.spawn(argv, self.log_file, env)

    def _await_dags(self) -> None:
        wait_until(self._serves, "Airflow to serve its DAGs", START_TIMEOUT_S, 1.0)

    def _serves(self) -> bool:
        ended = {name: self._started[name].returncode for name in self.missing_components()}
        if ended:
            raise AirflowStartError(f"Airflow's components ended: {ended}\n{self.log_tail()}")
        return self.api.serves(self.dags)


def _end_groups(processes: Collection[subprocess.Popen[bytes]]) -> None:
    """Ask whole groups to end, then see to it, descendants in groups of their own included."""
    families = [member for process in processes for member in _family(process.pid)]
    for process in processes:
        _signal_group(process.pid, signal.SIGTERM)
    _, alive = psutil.wait_procs(families, timeout=STOP_TIMEOUT_S)
    for process in processes:
        _signal_group(process.pid, signal.SIGKILL)
    for left in alive:
        try:
            left.kill()
        except psutil.NoSuchProcess:
            continue
    for process in processes:
        process.wait(STOP_TIMEOUT_S)


def _family(pid: int) -> list[psutil.Process]:
    """The process and all its descendants."""
    try:
        return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _kill_family(process: psutil.Process) -> None:
    """From the top, each stopped before its children are looked for: none is started meanwhile."""
    try:
        process.suspend()
        for child in process.children():
            _kill_family(child)
        process.kill()
    except psutil.NoSuchProcess:
        return


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return
