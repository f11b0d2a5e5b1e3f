"""The ledger's file is its owner's alone, and so is what SQLite keeps beside it."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehome import private_files
from rehome.domain.run.event_kind import EventKind
from rehome.ledger.store import Ledger
from tests.session.open_to_others import open_to_others


@pytest.fixture(params=[0o022, 0o000, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_a_new_ledger_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "rehome" / "ledger.db"
    with Ledger.open(f"sqlite:///{path}") as ledger, ledger.reading():
        ledger.events()
        ledger.add_event(EventKind.REQUEST, "")
        parts = sorted(path.parent.iterdir())
        assert [part.name for part in parts] == ["ledger.db", "ledger.db-shm", "ledger.db-wal"]
        assert {mode(part) for part in parts} == {0o600}
    assert mode(path.parent) == 0o750


def test_a_ledger_from_before_is_closed_when_it_is_opened_and_that_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "ledger.db"
    url = f"sqlite:///{path}"
    with Ledger.open(url) as ledger, ledger.reading():
        ledger.events()
        ledger.add_event(EventKind.REQUEST, "")
        for part in tmp_path.iterdir():
            part.chmod(0o644)
        assert len(list(open_to_others(*tmp_path.iterdir()))) == 3
        tmp_path.chmod(0o755)
        Ledger.open(url).close()
        assert {mode(part) for part in tmp_path.iterdir()} == {0o600}
        assert f"{path} was open to other users of this machine (mode 644)" in caplog.text
        caplog.clear()
        Ledger.open(url).close()
        assert caplog.text == ""
    assert mode(tmp_path) == 0o755  # it may hold other files


def test_a_ledger_that_its_group_may_write_stays_the_groups(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    Ledger.open(f"sqlite:///{path}").close()
    path.chmod(0o664)
    Ledger.open(f"sqlite:///{path}").close()
    assert mode(path) == 0o660


@pytest.mark.parametrize("error", [PermissionError, OSError, None])
def test_a_file_whose_mode_cannot_be_changed_is_told_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: type[OSError] | None,
) -> None:
    """It is another user's, on a read-only file system, or on one that keeps no modes."""

    def refused(*_: object, **__: object) -> None:
        if error is not None:
            raise error

    path = tmp_path / "ledger.db"
    path.touch()
    path.chmod(0o644)
    monkeypatch.setattr(Path, "chmod", refused)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            private_files.private_file(path)
    assert caplog.messages == [
        f"{path} is open to other users of this machine (mode 644), and that could not be "
        "changed. Have its owner chmod it to 600, or keep it where files have modes."
    ]


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("wanted", [0o750, 0o700, 0o755, 0o2770])
def test_a_new_folder_has_exactly_its_mode(tmp_path: Path, wanted: int) -> None:
    private_files.folder(tmp_path / "a" / "b", wanted)
    assert mode(tmp_path / "a" / "b") == wanted


@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [
        (0o755, 0o750, 0o750),
        (0o777, 0o750, 0o770),
        (0o2775, 0o755, 0o2775),
        (0o755, 0o751, 0o751),
        (0o700, 0o755, 0o700),
    ],
)
def test_a_folder_from_before_loses_only_what_others_may_do(
    tmp_path: Path, before: int, wanted: int, after: int
) -> None:
    path = tmp_path / "folder"
    path.mkdir()
    path.chmod(before)
    private_files.folder(path, wanted)
    assert mode(path) == after


def test_a_file_in_place_of_a_folder_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    path.chmod(0o644)
    private_files.folder(path)
    assert mode(path) == 0o644


def test_what_is_open_to_others_is_found(tmp_path: Path) -> None:
    for name, folder_mode in (("open", 0o755), ("closed", 0o750), ("only entered", 0o751)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
        (tmp_path / name / "file").chmod(0o644)
        (tmp_path / name).chmod(folder_mode)
    found = set(open_to_others(*tmp_path.iterdir()))
    assert {str(path.relative_to(tmp_path)) for path in found} == {
        "open",
        "open/file",
        "only entered/file",
    }
