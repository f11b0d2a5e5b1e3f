"""What is installed is what was locked, byte for byte: every package of the locks has hashes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIN = re.compile(r"^([a-z0-9.\-]+)==([^ ;]+)")


def packages(lock: str) -> dict[tuple[str, str], list[str]]:
    """Name and version of each package → its hashes."""
    found: dict[tuple[str, str], list[str]] = {}
    for line in lock.splitlines():
        if pin := PIN.match(line):
            hashes = found.setdefault((pin[1], pin[2]), [])
        elif line.lstrip().startswith("--hash="):
            hashes.append(line.strip().removeprefix("--hash=").removesuffix(" \\"))
        else:
            assert line.lstrip().startswith("#"), line
    return found


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_every_package_has_hashes_and_comes_from_wherever_the_installer_is_told(name: str) -> None:
    text = (ROOT / name).read_text()
    found = packages(text)
    assert len(found) > 100
    assert all(found.values())
    for hashes in found.values():
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes)
    assert "://" not in text


def test_both_locks_have_the_same_versions() -> None:
    ours, all_of_them = (
        packages((ROOT / f"{name}.lock").read_text())
        for name in ("requirements", "requirements-dev")
    )
    assert ours.items() <= all_of_them.items()


def test_what_set_up_installs_is_checked() -> None:
    text = (ROOT / "bin" / "setup").read_text()
    installing = re.findall(r"(?:uv pip sync|pip install|mvn) -.*", text)
    assert len(installing) == 4
    for command in installing:
        assert "--require-hashes" in command or "--strict-checksums" in command
    assert "--generate-hashes" in (ROOT / "Makefile").read_text()
