"""The page's server alone, on plans that are recorded here: `make page`, for work on its looks.

There is no Airflow and no broker behind it: who opens it is an admin, and nothing is carried out.
It starts anew when a file of the page is saved. With `REHOME_LEDGER_URL` and `REHOME_WAREHOUSE` it
shows what these hold.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

ROOT = Path(__file__).resolve().parents[3]
STATE = ROOT / ".state" / "page"
PORT = 8090
FOLDERS = ("plugins/rehome/ui", "include/rehome/page", "include/rehome/account", "tests/ui")
WATCHED = tuple(ROOT / folder for folder in FOLDERS)
KINDS = ("*.py", "*.html", "*.css", "*.js", "*.svg")


def environment(state: Path) -> Mapping[str, str]:
    """What Airflow and Rehome read when they are imported."""
    return {
        "AIRFLOW_HOME": str(state / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),
        "AIRFLOW__API__SECRET_KEY": secrets.token_urlsafe(32),
        "REHOME_LEDGER_URL": f"sqlite:///{state}/ledger.db",
        "REHOME_WAREHOUSE": (state / "warehouse").as_uri(),
    }


class AsAdmin:
    """Every request is an admin's."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._cookie = f"_token={token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] == "http":
            scope["headers"] = [*scope["headers"], (b"cookie", self._cookie)]
        await self._app(scope, receive, send)


def app() -> ASGIApp:
    """The application, as uvicorn makes it in each of its processes."""
    from tests.ui.site import page_app, token_of

    return AsAdmin(page_app(), token_of("admin"))


def make_users_database() -> None:
    """Airflow's own, which the page asks whether a login still holds, and about runs."""
    from airflow.utils.db import initdb

    initdb()


def record(ledger_url: str, warehouse: Path) -> None:
    """Plans of every kind: one that runs, one that waits for a person, and those that ended."""
    from rehome.domain.run.states import PlanState
    from rehome.ledger.store import Ledger
    from tests.ledger.set_clock import SetClock
    from tests.ui.site import Site, drain_moves, paused_heal, snapshot_of, staying_open

    clock = SetClock()
    clock.pass_s(-timedelta(hours=1).total_seconds())
    with Ledger.open(ledger_url, clock=clock) as ledger:
        site = Site(ledger, clock, warehouse)
        snapshot_of(site)
        paused_heal(site, "paused", cluster_id="c2")
        staying_open(site, "open")
        done = site.plan("done", *drain_moves(5, "payments"), cluster_id="c3")
        site.run(done, 5)
        site.end(done)
        failed = site.plan("failed", *drain_moves(5, "clicks"), cluster_id="c4")
        site.run(failed, 2, 1)
        site.end(failed, PlanState.FAILED, "a broker did not answer")
        site.plan("to-approve", *drain_moves(7, "logs"), cluster_id="c5")
        running = site.plan("running", *drain_moves(40))
        site.run(running, 12, 4)
        for bytes_done in range(0, 13 * 400_000_000, 400_000_000):
            site.poll(running, bytes_done)
            clock.pass_s(60)


@contextmanager
def prepared(state: Path) -> Iterator[None]:
    """Settings of this process and of those that it starts; the data is made anew."""
    mine = {"REHOME_LEDGER_URL", "REHOME_WAREHOUSE"} & os.environ.keys()
    before = dict(os.environ)
    os.environ.update({**environment(state), **{name: before[name] for name in mine}})
    try:
        shutil.rmtree(state, ignore_errors=True)
        (state / "warehouse").mkdir(parents=True)
        make_users_database()
        if not mine:
            record(os.environ["REHOME_LEDGER_URL"], state / "warehouse")
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def main() -> None:
    """Record, and serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--state", type=Path, default=STATE, help="folder for all that is written")
    parser.add_argument("--watch", type=Path, nargs="*", default=WATCHED, help="folders")
    chosen = parser.parse_args()
    with prepared(chosen.state):
        print(f"http://127.0.0.1:{chosen.port}/rehome/", flush=True)
        uvicorn.run(
            "tests.ui.alone.page_alone:app",
            factory=True,
            port=chosen.port,
            reload=True,
            reload_dirs=[str(folder) for folder in chosen.watch],
            reload_includes=list(KINDS),
            lifespan="off",
        )


if __name__ == "__main__":
    main()
