"""Ports of the core: what is behind them, and that nothing has to be."""

from __future__ import annotations

import inspect

import pytest

from rehome.extras.composition import INSTALLED_EXTRAS
from rehome.fleet import watch_runs
from rehome.run.ports import (
    AlertChannels,
    Extras,
    FileExport,
    Heals,
    KnownLoads,
    RunMetrics,
    extras,
)

ALONE = Extras()


def test_every_port_of_an_installation_has_an_extra() -> None:
    assert extras() is INSTALLED_EXTRAS
    ports = (AlertChannels, RunMetrics, KnownLoads, FileExport)
    behind = (
        INSTALLED_EXTRAS.channels,
        INSTALLED_EXTRAS.metrics,
        INSTALLED_EXTRAS.loads,
        INSTALLED_EXTRAS.export,
    )
    for port, extra in zip(ports, behind, strict=True):
        assert isinstance(extra, port)
        named = {name for name in vars(port) if not name.startswith("_") and name != "setting"}
        assert named <= vars(type(extra)).keys(), f"{type(extra).__name__} leaves something out"


@pytest.mark.parametrize("name", [name for name in vars(Heals) if not name.startswith("_")])
def test_heals_are_those_of_watching_and_take_what_the_port_passes(name: str) -> None:
    wanted = list(inspect.signature(getattr(Heals, name)).parameters)[1:]
    assert INSTALLED_EXTRAS.heals is watch_runs
    assert list(inspect.signature(getattr(watch_runs, name)).parameters) == wanted
    assert not getattr(ALONE.heals, name)(*wanted), "without watching nothing is a heal"


def test_without_extras_nothing_is_sent_measured_known_or_written() -> None:
    assert ALONE.channels.deliver_all([]) == []
    assert ALONE.channels.problems() == ()
    with ALONE.channels.one_task():
        assert ALONE.loads.read(*4 * (None,)) is None  # type: ignore[arg-type]
    assert ALONE.export.of(*5 * (None,)) is None  # type: ignore[arg-type]
