"""``rehome ledger export`` and ``import``: what people run to move a ledger."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from rehome.cli.main import main
from rehome.domain.run.event_kind import EventKind
from rehome.ledger.store import Ledger
from tests.ledger.empty_ledgers import EmptyLedgers


@pytest.fixture
def url(empty_ledgers: EmptyLedgers, tmp_path: Path) -> str:
    empty_ledgers.put(tmp_path / "ledger.db")
    found = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Ledger.open(found) as ledger:
        ledger.add_event(EventKind.REQUEST, "ann's")
    return found


def test_a_ledger_moves_and_keeps_its_id(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, new = tmp_path / "ledger.jsonl", f"sqlite:///{tmp_path / 'new.db'}"
    assert main(["ledger", "export", "--ledger", url, "--out", str(out)]) == 0
    assert "2 rows of 2 tables" in capsys.readouterr().out
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert main(["ledger", "import", "--ledger", new, str(out)]) == 0
    assert "2 rows of 2 tables are in the ledger" in capsys.readouterr().out
    with Ledger.open(url) as before, Ledger.open(new) as after:
        assert after.ledger_id == before.ledger_id
        assert [event.detail for event in after.events()] == ["ann's"]


def test_nothing_is_replaced(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ledger.jsonl"
    assert main(["ledger", "export", "--ledger", url, "--out", str(out)]) == 0
    written = out.read_bytes()
    assert main(["ledger", "export", "--ledger", url, "--out", str(out)]) == 1
    assert "exports are never replaced" in capsys.readouterr().err
    assert out.read_bytes() == written
    assert main(["ledger", "import", "--ledger", url, str(out)]) == 1
    assert "The ledger is not empty" in capsys.readouterr().err


def test_what_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = f"sqlite:///{tmp_path / 'nowhere.db'}"
    out = tmp_path / "out"
    assert main(["ledger", "export", "--ledger", nowhere, "--out", str(out)]) == 1
    assert "There is no ledger at" in capsys.readouterr().err
    assert not out.exists()
    assert main(["ledger", "import", "--ledger", nowhere, str(tmp_path / "no-file")]) == 1
    assert "no-file" in capsys.readouterr().err
    assert not (tmp_path / "nowhere.db").exists()
