"""What another client does as soon as a plan of Rehome has adopted its reassignment."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from local.process.waiting import wait_until
from rehome.domain.run.event_kind import AnyKind, EventKind
from tests.dags.site import Site


def kinds(site: Site) -> list[AnyKind]:
    """Of all events of the ledger."""
    return [event.kind for event in site.ledger.events()]


@contextmanager
def once_adopted(site: Site, act: Callable[[], object]) -> Iterator[None]:
    """Let it act while the run goes on. Not before: the copies may be over before the adoption."""

    def other() -> None:
        wait_until(lambda: EventKind.ADOPTED in kinds(site), "the plan to have it")
        act()

    another_client = threading.Thread(target=other, daemon=True)
    another_client.start()
    yield
    another_client.join(120)
