"""What is out of bounds is refused in words, never by an error; forms of strangers are not read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient

from rehome.api import bounded
from rehome.api.decisions import RECORDER
from rehome.ledger.base.audit_entry import Decided, Door
from rehome.ui.headers import HEADERS
from rehome.ui.page_bounds import LARGEST_FORM_BYTES, LONGEST_PATH, LONGEST_QUERY, MOST_FIELDS
from tests.ledger.audit_rows import audit_of
from tests.ui.site import Site, snapshot_of

Client = Callable[[str], TestClient]
HUGE = ("1" + "0" * 400, "9" * 5000, str(2**63), "1" + "0" * 30, "-1", "1e9", "NaN", "٣")


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize(
    "address",
    [
        "?page={}",
        "plans/p1?page={}",
        "plans/p1/tabs/partitions?page={}&broker={}",
        "plans/p1/tabs/events?page={}",
        "plans/p1/partitions.csv?broker={}",
        "clusters/test/new?action=drain&broker={}",
    ],
)
def test_no_number_in_an_address_is_an_error_of_the_server(
    client: Client, site: Site, address: str, number: str
) -> None:
    site.plan("p1")
    snapshot_of(site)
    answer = client("admin").get(address.format(number, number))
    assert answer.status_code in (200, 414, 422)
    assert answer.headers.items() >= {k.lower(): v for k, v in HEADERS.items()}.items()


def test_the_largest_page_there_can_be_is_empty(client: Client, site: Site) -> None:
    site.plan("p1")
    for address in ("?page=1000000", "plans/p1/tabs/events?page=1000000"):
        assert client("viewer").get(address).status_code == 200
    assert client("viewer").get("?page=1000001").status_code == 422


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("plans/" + "x" * LONGEST_PATH, 414),
        ("plans/p1?q=" + "x" * LONGEST_QUERY, 414),
        ("plans/p1?q=%00", 404),
        ("clusters/%00", 404),
        ("static/" + "x" * 1000, 404),
        ("static/" + "x/" * 500, 404),
        ("static/..%2F..%2Fapp.py", 404),
        ("data-docs/reassign_partitions/manual__p1/" + "x" * 1000 + ".html", 404),
        ("files/p1/export/" + "x" * 1000, 404),
        ("plans/p1/tabs/" + "x" * 1000, 404),
        ("clusters/" + "x" * 1000, 404),
        ("runs/" + "x" * 700 + "/" + "y" * 700, 200),
        ("nothing/here", 404),
    ],
)
def test_no_address_is_an_error_of_the_server(
    client: Client, site: Site, address: str, code: int
) -> None:
    site.plan("p1")
    snapshot_of(site)
    assert client("admin").get(address).status_code == code


def test_a_cluster_with_a_hundred_patterns_is_not_searched_for_more(
    client: Client, site: Site
) -> None:
    snapshot_of(site)
    topics = {"topics": ",".join(f"t{n}*" for n in range(101))}
    assert client("admin").get("clusters/test/topics", params=topics).status_code == 422


@pytest.mark.parametrize("role", ["", "viewer"])
def test_a_form_of_a_stranger_is_not_read(
    client: Client, site: Site, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    async def read(*_: object) -> bytes:
        return pytest.fail("the form was read")

    site.plan("p1")
    if role:  # may log in, and not act: the form is read, and not larger than a form is
        answer = client(role).post("plans/p1/controls/cancel", content=b"x" * 13_000_000)
        assert answer.status_code == 413
    else:
        monkeypatch.setattr(bounded, "body_of", read)
        answer = client(role).post("plans/p1/controls/cancel", content=b"x" * 13_000_000)
        assert answer.status_code == 401


@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        (b"a" * (LARGEST_FORM_BYTES + 1), "application/x-www-form-urlencoded", 413),
        (b"a&" * MOST_FIELDS, "application/x-www-form-urlencoded", 413),
        (b"throttle=%00", "application/x-www-form-urlencoded", 422),
        (b"{}", "application/json", 415),
        (b"--x\r\n\r\n", "multipart/form-data; boundary=x", 415),
        (b"throttle=1", "application/x-www-form-urlencoded; charset=utf-8", 403),  # no token
    ],
)
def test_what_is_no_form_of_the_page_is_refused(
    client: Client, site: Site, content: bytes, kind: str, code: int
) -> None:
    site.plan("p1")
    answer = client("admin").post(
        "plans/p1/controls/cancel", content=content, headers={"content-type": kind}
    )
    assert answer.status_code == code
    assert answer.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]


def test_what_is_asked_on_the_page_is_in_the_audit_with_the_address(
    client: Client, site: Site, token: str, triggered: list[object]
) -> None:
    site.run(site.plan("p1"), flying=2)
    client("admin").post(
        "plans/p1/controls/change_throttle",
        headers={"X-Rehome-Token": token},
        data={"throttle": "1 MB/s"},
    ).raise_for_status()
    assert RECORDER.flush(30)
    (row,) = [row for row in audit_of(site.ledger) if row.door is Door.PAGE]
    assert (row.decision, row.user_id, row.plan_id) == (Decided.THROTTLE, "admin", "p1")
    assert (row.address, row.run_id) == ("testclient", "manual__1")
    assert row.detail == {"throttle": 1_000_000}
