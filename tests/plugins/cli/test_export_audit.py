"""``rehome audit export``: what people run to export, remove and check."""

from __future__ import annotations

import json
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from rehome.cli.main import main
from rehome.cli.output import ExitCode
from rehome.domain.clock import utc_now
from rehome.domain.run.event_kind import EventKind
from rehome.ledger.base.audit_entry import AuditEntry, Decided, Door
from rehome.ledger.base.database import LedgerUnavailableError
from rehome.ledger.store import Ledger
from tests.ledger.audit_rows import audit_of
from tests.ledger.empty_ledgers import EmptyLedgers

COMMAND = ("audit", "export")


@pytest.fixture
def url(empty_ledgers: EmptyLedgers, tmp_path: Path) -> str:
    empty_ledgers.put(tmp_path / "ledger.db")
    found = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Ledger.open(found) as ledger:
        for name in ("ann", "bob"):
            ledger.add_audit(AuditEntry(Decided.CLEARED, Door.AIRFLOW_API, user_name=name))
            ledger.add_event(EventKind.REQUEST, name)
    return found


def test_an_export_is_private_and_is_known_again(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "audit.jsonl"
    assert main([*COMMAND, "--ledger", url, "--out", str(out)]) == 0
    assert "2 audit rows and 2 events from the first one" in capsys.readouterr().out
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert [json.loads(line).get("table") for line in out.read_text().splitlines()] == [
        None,
        "audit",
        "audit",
        "events",
        "events",
    ]
    assert main([*COMMAND, "--ledger", url, "--verify", str(out)]) == 0
    out.write_text(out.read_text().replace("bob", "eve"))
    assert main([*COMMAND, "--ledger", url, "--verify", str(out)]) == 1
    assert "is no export of this ledger" in capsys.readouterr().err


def test_rows_are_removed_only_where_that_is_asked(url: str, tmp_path: Path) -> None:
    arguments = ["--ledger", url, "--out"]
    assert main([*COMMAND, *arguments, str(tmp_path / "first")]) == 0
    with Ledger.open(url) as ledger:
        assert [row.user_name for row in audit_of(ledger)][:2] == ["ann", "bob"]
    assert main([*COMMAND, *arguments, str(tmp_path / "second"), "--remove"]) == 0
    with Ledger.open(url) as ledger:
        assert [row.decision for row in audit_of(ledger)] == [Decided.EXPORTED] * 2
        assert [event.detail for event in ledger.events()] == ["bob"]
        assert [export.removes for export in ledger.audit_exports()] == [False, True]


def test_times_bound_what_is_exported(url: str, tmp_path: Path) -> None:
    now = utc_now().replace(tzinfo=None)
    hour = timedelta(hours=1)
    for name, times in (
        ("old", ["--until", (now - hour).isoformat()]),
        ("new", ["--from", (now + hour).isoformat(), "--until", (now + 2 * hour).isoformat()]),
    ):
        assert main([*COMMAND, "--ledger", url, "--out", str(tmp_path / name), *times]) == 0
        assert len((tmp_path / name).read_text().splitlines()) == 1


def test_a_file_is_never_replaced(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "audit.jsonl"
    out.write_text("an earlier one")
    assert main([*COMMAND, "--ledger", url, "--out", str(out), "--remove"]) == 1
    assert "is there already" in capsys.readouterr().err
    assert out.read_text() == "an earlier one"


def test_a_file_whose_rows_may_be_gone_is_kept(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_args: object, **_named: object) -> int:
        raise LedgerUnavailableError("The ledger cannot be used now")

    monkeypatch.setattr(Ledger, "keep_export", away)
    out = tmp_path / "audit.jsonl"
    assert main([*COMMAND, "--ledger", url, "--out", str(out), "--remove"]) == 1
    assert len(out.read_text().splitlines()) == 5


def test_a_ledger_that_is_not_there_is_not_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, path = tmp_path / "audit.jsonl", tmp_path / "none.db"
    assert main([*COMMAND, "--ledger", f"sqlite:///{path}", "--out", str(out)]) == 1
    assert "There is no ledger at" in capsys.readouterr().err
    assert not path.exists()
    assert not out.exists()


def test_a_time_that_is_none_is_refused_with_what_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in ("--from", "--until"):
        with pytest.raises(SystemExit) as ended:
            main([*COMMAND, "--out", str(tmp_path / "out"), option, "yesterday"])
        assert ended.value.code == ExitCode.USAGE
        assert f"{option}: 'yesterday' is no time: write 2030-01-31" in capsys.readouterr().err


def test_a_text_that_is_no_url_is_refused_without_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for no_url in (
        "secret",
        "postgresql://ann:secret@db.example:port/ledger",
        "postgresql://ann:p@ss:secret@db.example/ledger",
    ):
        asked = [*COMMAND, "--out", str(tmp_path / "out"), "--ledger", no_url]
        assert main(asked) == ExitCode.FAILED
        said = capsys.readouterr().err
        assert "The ledger cannot be opened" in said
        assert "secret" not in said
