"""A new ledger is made in one step; older ones go on from there, or are refused with the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, make_url, text

from rehome.ledger import store
from rehome.ledger.base.database import PASS_THROUGH, LedgerNotOpenError, newest_schema
from rehome.ledger.store import Ledger
from rehome.version import REHOME_VERSION
from tests.ledger.base.schemas import at_revision
from tests.ledger.small_plans import make_plan, move

BASELINE = "0044"
RECORDED = json.loads(Path(__file__).with_name("schema_0044.json").read_text())
"""What the migrations 0001 to 0044 had made, one after the other, in each database."""
EVENT = "INSERT INTO events (at, actor, kind, detail) VALUES ('2026-01-01', 'ann', 'k', 'd')"


def test_the_baseline_makes_what_the_migrations_before_it_had_made(ledger_url: str) -> None:
    made = at_revision(ledger_url, BASELINE)
    assert made == RECORDED[make_url(ledger_url).get_backend_name()]


def test_the_newest_schema_is_alembics_head() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(store.__file__).with_name("migrations")))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [newest_schema()]


def test_a_ledger_of_the_last_migration_before_the_baseline_goes_on(ledger_url: str) -> None:
    at_revision(ledger_url, BASELINE, EVENT, EVENT)
    with Ledger.open(ledger_url) as ledger:
        own = ledger.ledger_id
        assert [event.detail for event in ledger.events()] == ["d", "d"]
    with Ledger.open(ledger_url) as ledger:
        assert ledger.ledger_id == own, "the id is given once"


def test_an_older_ledger_is_refused_with_the_version_to_pass_through(ledger_url: str) -> None:
    at_revision(ledger_url, BASELINE, EVENT, "UPDATE alembic_version SET version_num = '0042'")
    with pytest.raises(LedgerNotOpenError) as refused:
        Ledger.open(ledger_url)
    assert "the schema 0042, and this version of Rehome upgrades ledgers from" in str(refused.value)
    assert PASS_THROUGH in str(refused.value)
    engine = create_engine(ledger_url)
    with engine.connect() as connection:
        left = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    engine.dispose()
    assert left == "0042", "nothing in it was changed"


def test_a_plan_has_the_version_that_has_made_it(ledger_url: str) -> None:
    with Ledger.open(ledger_url) as ledger:
        plan = make_plan("p1", move("t", 0, (1,), (2,)))
        ledger.create_plan(plan, {}, "memory://p1", "run", "ann")
        assert ledger.plan("p1").rehome_version == REHOME_VERSION
