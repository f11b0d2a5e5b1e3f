"""Moves between log dirs that have started, and runs that died on the way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rehome.domain.plan.move import Move
from rehome.ledger.store import Ledger
from tests.execution.observation.log_dirs.log_dir_cluster import LogDirCluster
from tests.execution.observation.log_dirs.log_dir_site import (
    WITHIN,
    Approved,
    Site,
)
from tests.execution.simulated_cluster import Crash


@pytest.fixture
def started(ledger: Ledger, approved: Approved) -> Callable[..., Site]:
    def make(of: Move = WITHIN, memory: LogDirCluster | None = None) -> Site:
        site = Site(of, ledger, approved, memory)
        assert site.step().admitted == [site.partition]
        return site

    return make


@pytest.fixture
def crashed(ledger: Ledger, approved: Approved) -> Callable[..., Site]:
    def make(memory: LogDirCluster, of: Move, at_call: int) -> Site:
        """A run that died at this request of its first step: 1 = before any, 2 = after the first.

        The first one names log dirs, the next one sends the reassignment.
        """
        memory.crash_at = at_call
        site = Site(of, ledger, approved, memory)
        with pytest.raises(Crash):
            site.step()
        return site

    return make
