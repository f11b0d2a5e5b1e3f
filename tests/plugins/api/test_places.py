"""So many at once for each user, and in all."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from rehome.api.places import NoRoomError, Places


def test_a_user_has_so_many_and_all_users_together_so_many() -> None:
    places = Places(per_user=2, in_all=3)
    with ExitStack() as open_:
        for user in ("ann", "ann", "bob"):
            open_.enter_context(places.take(user))
        with pytest.raises(NoRoomError, match="You have 2") as own, places.take("ann"):
            pass
        with pytest.raises(NoRoomError, match="All users together have 3"), places.take("cid"):
            pass
        assert own.value.own
        assert places.open == 3
    assert places.open == 0


def test_what_ends_in_an_error_frees_its_place() -> None:
    places = Places(1, 1)
    with pytest.raises(ZeroDivisionError), places.take("ann"):
        1 / 0  # noqa: B018
    with places.take("ann"):
        assert places.open == 1
