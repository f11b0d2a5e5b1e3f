"""The demo's options: what cannot work is refused before anything is started."""

from __future__ import annotations

import pytest

from local.demo import parse_options


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--brokers", "3", "--drain", "1"], "--brokers 3: the demo needs 4 or more"),
        (["--drain", "9"], "--drain 9: the brokers are 1 to 4"),
        (["--drain", "0"], "--drain 0: the brokers are 1 to 4"),
        (["--throttle", "0"], "--throttle must be positive"),
    ],
)
def test_what_cannot_work_is_refused_with_the_reason(
    arguments: list[str], reported: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_options(arguments)
    assert reported in capsys.readouterr().err


def test_another_broker_of_a_larger_cluster_can_be_drained() -> None:
    options = parse_options(["--brokers", "6", "--drain", "5"])
    assert (options.brokers, options.drain) == (6, 5)
