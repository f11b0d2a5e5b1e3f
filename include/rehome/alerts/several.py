"""Many alerts at once, as one message. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from rehome.alerts.alert import Alert
from rehome.alerts.kinds import AlertKind
from rehome.alerts.message import one_line, payload
from rehome.domain.run.findings import Severity
from rehome.domain.text import count_text


def about_all(alerts: Sequence[Alert]) -> Alert:
    """One alert that has them all, the worst first: each in a line, and whole in its facts.

    Its id is the same for the same alerts.
    """
    severities, kinds = list(Severity), list(AlertKind)
    worst_first = sorted(
        alerts, key=lambda each: (severities.index(each.severity), kinds.index(each.kind))
    )
    ids = "\n".join(sorted(each.message_id for each in alerts))
    count = count_text(len(alerts), "alert")
    return Alert(
        AlertKind.SEVERAL,
        count,
        "\n".join([f"{count} at once, the worst first.", *map(one_line, worst_first)]),
        "Look at the first one: the others may have the same cause.",
        graded=worst_first[0].severity,
        facts={"alerts": [payload(each) for each in worst_first]},
        message_id=hashlib.sha256(ids.encode()).hexdigest()[:32],
    )
