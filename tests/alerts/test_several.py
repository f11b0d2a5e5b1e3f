"""Many alerts as one: the worst first, each whole, and an id that stands for just these."""

from __future__ import annotations

from rehome.alerts.alert import Alert
from rehome.alerts.kinds import AlertKind
from rehome.alerts.message import html_body, one_line, payload
from rehome.alerts.several import about_all
from rehome.domain.run.findings import Severity

DONE = Alert(AlertKind.DONE, "p1", "It is done.", plan_id="p1", message_id="a")
STALLED = Alert(
    AlertKind.STALLED, "p2", "Nothing moves <since> noon.", plan_id="p2", message_id="b"
)
WARNED = Alert(AlertKind.FINDING, "c1", "Slow.", graded=Severity.WARNING, message_id="c")


def test_it_is_as_severe_as_the_worst_and_has_each_whole() -> None:
    found = about_all([DONE, WARNED, STALLED])
    assert found.severity is Severity.ERROR
    assert found.facts["alerts"] == [payload(each) for each in (STALLED, WARNED, DONE)]
    assert found.text.splitlines()[1:] == [one_line(each) for each in (STALLED, WARNED, DONE)]
    assert "<br>Plan p2: Nothing moves &lt;since&gt; noon." in html_body(found)


def test_its_id_stands_for_these_alerts_in_any_order() -> None:
    assert about_all([DONE, STALLED]).message_id == about_all([STALLED, DONE]).message_id
    assert about_all([DONE, STALLED]).message_id != about_all([DONE, WARNED]).message_id
