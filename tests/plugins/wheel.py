"""Rehome's wheel in environments of its own: beside the tests' packages, or beside those that a
company has with one of Airflow's versions.
"""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ROOT / "pyproject.toml"
UV = Path(sys.executable).parent / "uv"
KEPT = Path(os.environ.get("REHOME_AIRFLOWS") or ROOT / ".state" / "airflows")
"""Environments of Airflow's versions, 1.3 GB each: they outlive the tests."""
_COMPANY = (
    "amazon,apache-kafka,apache-spark,celery,cncf-kubernetes,common-compat,fab,google,http,"
    "openlineage,postgres,redis,slack,smtp,standard,statsd"
)


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel: its ``python``, and the command ``rehome``."""

    python: Path

    @property
    def command(self) -> Path:
        """What the wheel installs beside the interpreter."""
        return self.python.parent / "rehome"

    def version_of_python(self) -> str:
        """The whole version of its interpreter."""
        ask = "import platform; print(platform.python_version())"
        return subprocess.check_output([self.python, "-c", ask], text=True).strip()

    def site_packages(self) -> Path:
        """Where its packages are."""
        ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
        return Path(subprocess.check_output([self.python, "-c", ask], text=True).strip())

    def run(self, *words: str | Path, env: Mapping[str, str] | None = None) -> int:
        """Run it; its exit code."""
        asked = [str(self.command), *map(str, words)]
        return subprocess.run(asked, env=env, check=False, capture_output=True).returncode

    def versions(self, *packages: str) -> dict[str, str]:
        """The versions of some of its packages."""
        ask = f"import importlib.metadata as m; print(*map(m.version, {packages!r}))"
        done = subprocess.run([self.python, "-c", ask], check=True, capture_output=True, text=True)
        return dict(zip(packages, done.stdout.split(), strict=True))


@dataclass(frozen=True)
class Release:
    """A version of Airflow, and the packages that a company has got with it.

    :param day: on which it came out: its constraints are of that day; "" = of today.
    :param extras: of Airflow, by which these packages come.
    :param more: what is installed besides.
    :param kind: what tells it from others of the version.
    """

    version: str
    day: str = ""
    extras: str = _COMPANY
    more: tuple[str, ...] = ()
    kind: str = ""

    def __str__(self) -> str:
        return self.version + (f"-{self.kind}" if self.kind else "")


LOWEST = Release("3.1.8", "2026-03-11")
BETWEEN = Release("3.2.2", "2026-05-29")
NEWEST = Release("3.3.2")
SPREAD = Release(
    "3.3.2",
    extras="celery,fab,postgres,redis",
    more=(
        "apache-airflow-providers-celery",
        "apache-airflow-providers-fab",
        "apache-airflow-providers-keycloak",
        "apache-airflow-providers-postgres",
        "celery<5.7",  # whose backends lack what the provider imports
        "s3fs",
    ),
    kind="spread",
)
"""What runs on several machines, for people with roles."""


def installed_wheel(directory: Path) -> Installed:
    """Build the wheel of this checkout and install it; nothing is fetched."""
    home = directory / "venv"
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    others = home / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (others / "others.pth").write_text(sysconfig.get_path("purelib"))
    return _with_wheel(Installed(python), directory)


def interpreter_of(version: str) -> Path | None:
    """An interpreter of this version of Python on this machine; None = there is none."""
    find = (UV, "python", "find", "--no-python-downloads", version)
    done = subprocess.run(find, check=False, capture_output=True, text=True)
    if done.returncode == 0:
        return Path(done.stdout.strip())
    # pyenv's commands answer only for versions that have been chosen.
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return next(iter(sorted(pyenv.glob(f"versions/{version}.*/bin/python"))), None)


def installed_with(
    release: Release, directory: Path, interpreter: Path | None = None, *, python: str = ""
) -> Installed:
    """The wheel beside a version of Airflow; an environment that is there is used again.

    :param interpreter: that of its environment; None = that of the tests.
    :param python: its version; "" = that of the tests.
    """
    wanted = resolved(release, directory, python=python)
    home = KEPT / (f"{release}-python-{python}" if python else str(release))
    installed, stamp = Installed(home / "bin" / "python"), home / "stamp"
    want = hashlib.sha256("\n".join(_pins(wanted)).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != want:
        _run(UV, "venv", "-q", "--clear", "--python", interpreter or sys.executable, home)
        sync = ("pip", "sync", "-q", "--compile-bytecode", "--python", installed.python)
        _run(UV, *sync, wanted)
        stamp.write_text(want)
    return _with_wheel(installed, directory)


def resolved(release: Release, directory: Path, *, python: str = "") -> Path:
    """What the wheel needs beside what a company has with a version of Airflow.

    :param python: the version of Python; "" = that of the tests.
    """
    where = directory / f"resolved-{release}-{python or 'own'}"
    where.mkdir(parents=True)
    own = ("--python-version", python) if python else ("--python", sys.executable)
    constraints = constraints_of(release, where, own)
    asked, found = where / "asked.in", where / "needs.txt"
    airflow = f"apache-airflow[{release.extras}]=={release.version}"
    asked.write_text("\n".join([airflow, *_pyspark_like(constraints), *release.more]))
    _compile([PROJECT, asked], found, *own, "-c", constraints)
    return found


def constraints_of(release: Release, where: Path, own: Sequence[str]) -> Path:
    """What Airflow's constraints file of a version has, found as Airflow finds it: the newest
    packages of the day that fit all of its providers together.

    :param own: how uv is asked for the version of Python.
    """
    asked, constraints = where / "all.in", where / "constraints.txt"
    asked.write_text(f"apache-airflow[all]=={release.version}")
    day = ("--exclude-newer", release.day) if release.day else ()
    _compile([asked], constraints, *own, *day)
    return constraints


def _pyspark_like(constraints: Path) -> list[str]:
    """As docs/howto/connect.md says: pyspark of the version that pyspark-client has there."""
    clients = [pin for pin in _pins(constraints) if pin.startswith("pyspark-client==")]
    return [pin.replace("-client", "") for pin in clients]


def processor_s_of_resolving(directory: Path) -> float:
    """Processor time of finding what the wheel needs, with all that was asked before in a cache."""
    before = _processor_s()
    _compile([PROJECT], directory / "needs.txt")
    return _processor_s() - before


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _pins(compiled: Path) -> list[str]:
    """What was found, without its notes: these name places of this run."""
    return [line for line in compiled.read_text().splitlines() if line[:1].isalnum()]


def _compile(asked: Sequence[Path], found: Path, *words: str | Path) -> None:
    _run(UV, "pip", "compile", "-q", *words, "-o", found, *asked)


def built(into: Path, *words: str) -> Path:
    """The wheel, built into a folder; by the source archive unless ``--wheel`` is said."""
    here = ("--offline", "--no-build-isolation", "--python", sys.executable)
    _run(UV, "build", "-q", *here, *words, "-o", into, ROOT)
    (wheel,) = into.glob("*.whl")
    return wheel


def contents(wheel: Path) -> dict[str, int]:
    """Checksums of its files, by name."""
    with zipfile.ZipFile(wheel) as archive:
        return {each.filename: each.CRC for each in archive.infolist()}


def _with_wheel(installed: Installed, directory: Path) -> Installed:
    wheel = built(directory / "dist", "--wheel")
    install = ("pip", "install", "-q", "--offline", "--no-deps", "--reinstall")
    _run(UV, *install, "--python", installed.python, wheel)
    return installed


def _run(*command: str | Path) -> None:
    subprocess.run([*map(str, command)], cwd=ROOT, check=True)
