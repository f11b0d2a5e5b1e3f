"""Streams of news: so many for a user, so many in all, and none for a client that is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest
from fastapi import FastAPI

from local.process.waiting import wait_until
from rehome.api.places import Places
from rehome.ui.routes import live
from tests.ui.site import Site, served, token_of


@pytest.fixture
def address(page: FastAPI, site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A plan's stream, on a server of its own; two for a user, three in all."""
    monkeypatch.setattr(live, "STREAMS", Places(per_user=2, in_all=3))
    monkeypatch.setattr(live, "LOOK_S", 0.05)
    site.plan("p1")
    with served(page) as base:
        yield f"{base}/rehome/plans/p1/live"


def test_who_has_all_places_is_told_to_wait_and_a_client_that_goes_away_frees_its_own(
    address: str,
) -> None:
    def browser(name: str) -> httpx.Client:
        return httpx.Client(cookies={"_token": token_of("viewer", name)}, timeout=60)

    def opened(client: httpx.Client) -> httpx.Response:
        stream = open_.enter_context(client.stream("GET", address))
        if stream.status_code == 200:
            news.append(stream.iter_lines())  # without it, the stream would be closed
            next(news[-1])
        return stream

    news: list[Iterator[str]] = []

    with browser("ann") as ann, browser("bob") as bob, ExitStack() as open_:
        first, second = opened(ann), opened(ann)
        refused = opened(ann)
        assert [first.status_code, second.status_code] == [200, 200]
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == str(live.NO_PLACE_RETRY_S)
        assert refused.headers["x-content-type-options"] == "nosniff"
        assert "You have 2" in refused.read().decode()
        assert opened(bob).status_code == 200
        assert "All users together" in opened(bob).read().decode()
        first.close()
        wait_until(lambda: live.STREAMS.open == 2, "the place to be free", 30)
        assert opened(bob).status_code == 200
    wait_until(lambda: live.STREAMS.open == 0, "every place to be free", 30)
