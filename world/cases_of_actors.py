"""Named scripts of actors that came later: channels of alerts that falter. See
:mod:`world.cases`.
"""

from __future__ import annotations

from dataclasses import replace

from world.cases import ONE, PLAN, START
from world.others import LISTS, RATES
from world.rehome.channel import Answers
from world.script import Config, Do, Script, What

LEFTOVERS = (Config(True, "t", LISTS[0], "0:4"), Config(False, "", RATES[0], "5000000"))


def _channel(how: Answers, *does: Do, quiet_s: float = 300.0) -> Script:
    falters = Do(3.0, "A", What.CHANNEL_FALTERS, (how.value, quiet_s))
    plan = replace(PLAN, approval=True)
    return Script(
        *(1, 4, (ONE,), (plan,), LEFTOVERS, (START, falters, *does)),
        quiet_s=quiet_s,
        channels=("A",),
    )


APPROVED = Do(80.0, "A", What.ANSWER, ("approve",))
SWEPT = tuple(Do(at_s, "A", What.SWEEP) for at_s in (60.0, 130.0, 220.0))

CHANNEL_LATE = _channel(Answers.LATE, *SWEPT, APPROVED)
"""A webhook answers after nine seconds."""

CHANNEL_NEVER = _channel(Answers.NEVER, *SWEPT, APPROVED)
"""It gives no answer, until the world becomes quiet."""

CHANNEL_REFUSES = _channel(Answers.REFUSES, *SWEPT, APPROVED)
"""It answers with an error of the server."""

CHANNEL_TWICE = _channel(Answers.TWICE, *SWEPT, APPROVED)
"""It takes each message, and its first answer is lost."""

CHANNEL_HANGS = _channel(
    Answers.HANGS,
    Do(100.0, "A", What.SWEEP),
    Do(400.0, "A", What.SWEEP),
    quiet_s=800.0,
)
"""A notifier never ends, and there are several alerts: each sweep waits for it once."""
