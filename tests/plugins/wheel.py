"""Rehome's wheel in an environment of its own, which has all other packages from the tests' one."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).parent / "uv"


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel: its ``python``, and the command ``rehome``."""

    python: Path

    @property
    def command(self) -> Path:
        """What the wheel installs beside the interpreter."""
        return self.python.parent / "rehome"

    def run(self, *words: str | Path, env: Mapping[str, str] | None = None) -> int:
        """Run it; its exit code."""
        asked = [str(self.command), *map(str, words)]
        return subprocess.run(asked, env=env, check=False, capture_output=True).returncode


def installed_wheel(directory: Path) -> Installed:
    """Build the wheel of this checkout and install it; nothing is fetched."""
    built, home = directory / "dist", directory / "venv"
    here = ("--offline", "--no-build-isolation", "--python", sys.executable)
    _run(UV, "build", "-q", *here, "--wheel", "-o", built, ROOT)
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    others = home / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (others / "others.pth").write_text(sysconfig.get_path("purelib"))
    (wheel,) = built.glob("*.whl")
    _run(UV, "pip", "install", "-q", "--offline", "--no-deps", "--python", python, wheel)
    return Installed(python)


def _run(*command: str | Path) -> None:
    subprocess.run([*map(str, command)], cwd=ROOT, check=True)
