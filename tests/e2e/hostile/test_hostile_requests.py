"""Requests of those who may do nothing, or little, on a real Airflow: bodies, numbers, streams,
sessions. What listens, and who may read the files, is in ``test_page``.
"""

from __future__ import annotations

import itertools
import json
import re
import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from local.process.waiting import wait_until
from tests.attacks.people import UNREAD, Person
from tests.conftest import Topics
from tests.dags.clusters import to
from tests.e2e.conftest import World
from tests.e2e.runs import record_planned
from tests.ledger.small_plans import move

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TRIGGER = "/api/v2/dags/reassign_partitions/dagRuns"
JSON = {"content-type": "application/json", "connection": "close"}
LONGEST_PAUSE_S = 2.0
"""For which one hostile request may keep all others waiting, on a machine that does other work."""
STREAMS = 20
"""More than one person looks at."""

People = Mapping[str, Person]


@pytest.fixture(scope="module")
def people(world: World) -> People:
    """Who asks; "" = nobody has logged in."""
    url = world.airflow.url
    users = {
        name: Person(url, name, world.password(name)) for name in ("viewer", "ann", "bob", "ops")
    }
    return {"": Person(url), **users}


def large_body(size_bytes: int = 13_000_000) -> str:
    """A reassignment of so many bytes."""
    entry = {"topic": "t", "partition": 0, "replicas": [1, 2, 3], "log_dirs": ["any"] * 3}
    count = size_bytes // len(json.dumps(entry) + ", ")
    entries = [entry | {"partition": number} for number in range(count)]
    wanted = {"version": 1, "partitions": entries}
    return json.dumps(
        {"logical_date": None, "conf": {"action": "reassign", "reassignment": wanted}}
    )


def deep_body(depth: int = 10_000) -> str:
    """Objects within objects."""
    return f'{{"logical_date": null, "conf": {{"a": {"[" * depth}{"]" * depth}}}}}'


def _version(url: str) -> None:
    """A simple request."""
    httpx.get(f"{url}/api/v2/version", headers={"connection": "close"}, timeout=120, verify=UNREAD)


@contextmanager
def asked_meanwhile(url: str) -> Iterator[list[float]]:
    """Seconds that simple requests take while something else happens."""
    took: list[float] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            begun = time.monotonic()
            _version(url)
            took.append(time.monotonic() - begun)
            over.wait(0.02)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join(120)


def one_more(took: list[float]) -> None:
    """Wait until a simple request has been answered that was sent after now."""
    before = len(took)
    wait_until(lambda: len(took) > before + 1, "a simple request to be answered", 240, 0.05)


def post(url: str, body: str, **headers: str) -> httpx.Response:
    """A POST of a body that is as large as it is; a server may close before it has read it all."""
    try:
        return httpx.post(
            f"{url}{TRIGGER}", content=body, headers=JSON | headers, timeout=120, verify=UNREAD
        )
    except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):
        return httpx.Response(413)


def test_nothing_is_parsed_for_nobody(people: People) -> None:
    """(7) Whoever has not logged in is told so, at once, and nothing else."""
    url = people[""].url
    wrong = json.dumps({"logical_date": None, "conf": {"action": "nonsense"}})
    bodies = _hostile_bodies()
    with asked_meanwhile(url) as took:
        answers = {name: post(url, body) for name, body in bodies.items()}
        one_more(took)
    assert {name: each.status_code for name, each in answers.items()} == dict.fromkeys(answers, 401)
    assert max(took) < LONGEST_PAUSE_S, f"all others waited for {max(took):.1f} s"
    told = post(url, wrong)
    assert (told.status_code, "rebalance" in told.text) == (401, False)


def _hostile_bodies() -> dict[str, str]:
    """To be made before anything is timed: the large one holds this process for seconds."""
    number = "9" * 5000
    return {
        "large": large_body(),
        "deep": deep_body(),
        "number": f'{{"logical_date": null, "conf": {{"throttle": {number}}}}}',
        "no JSON": "{" * 100,
    }


def test_a_user_is_told_what_is_wrong_with_a_hostile_body(people: People) -> None:
    """Within bounds: no 500, and nobody waits for it."""
    url, token = people[""].url, f"Bearer {people['ann'].token}"
    bodies = _hostile_bodies()
    with asked_meanwhile(url) as took:
        answers = {name: post(url, body, Authorization=token) for name, body in bodies.items()}
        one_more(took)
    codes = {name: each.status_code for name, each in answers.items()}
    assert all(400 <= code < 500 for code in codes.values()), codes
    assert max(took) < LONGEST_PAUSE_S, f"all others waited for {max(took):.1f} s"


def _addresses() -> Iterator[tuple[str, str]]:
    """Method and address of every route of the page's application, with a plan of no such id."""
    from rehome.ui.app import create_app

    for route in create_app().routes:
        path = re.sub(r"{\w+(:path)?}", "none", getattr(route, "path", ""))
        for method in sorted(getattr(route, "methods", None) or {"GET"}):
            yield method, path.lstrip("/")


def test_every_route_knows_who_asks(people: People) -> None:
    """Nobody: 401. A viewer changes nothing. Every answer, errors too, has the strict headers."""
    wrong: list[str] = []
    seen = 0
    for (method, path), name in itertools.product(_addresses(), ("", "viewer", "ann", "ops")):
        answer = people[name].page(method, path, timeout=30)
        seen += 1
        code = answer.status_code
        if not name and code != 401:
            wrong.append(f"nobody: {method} {path}: {code}")
        if name == "viewer" and method not in ("GET", "HEAD") and code < 400:
            wrong.append(f"viewer: {method} {path}: {code}")
        if code >= 500 and code != 503:
            wrong.append(f"{name}: {method} {path}: {code}")
        if "content-security-policy" not in answer.headers:
            wrong.append(f"{name}: {method} {path}: {code} without headers")
    print(f"{seen} requests")
    assert not wrong, "\n".join(wrong)


HUGE = ("9" * 400, "99999999999999999999", "-1", "1e400", "0x10", "\u0661", "NaN")


def test_numbers_are_bounded(people: People) -> None:
    """(8) Whatever stands for a number."""
    wrong: list[str] = []
    for path, number in itertools.product(("?page=", "clusters/none?plan=", "?state="), HUGE):
        answer = people["viewer"].page("GET", f"{path}{number}", timeout=30)
        if answer.status_code >= 500 or "content-security-policy" not in answer.headers:
            wrong.append(f"{path}{number[:30]}: {answer.status_code}")
    assert not wrong, "\n".join(wrong)


def own_token(person: Person) -> str:
    """What a page of a person's own carries."""
    found = re.search(r'"X-Rehome-Token": "([^"]+)"', person.page("GET", "").text)
    assert found
    return found[1]


@pytest.mark.parametrize("path", ["plans/none/controls/cancel", "clusters/none/new"])
def test_a_page_of_one_user_is_nothing_in_anothers_session(people: People, path: str) -> None:
    """Both may do what is asked; the page was given to the other one."""
    ann, bob = people["ann"], people["bob"]
    data = {"action": "drain"}
    own = bob.page("POST", path, data=data, headers={"X-Rehome-Token": own_token(bob)})
    assert own.status_code != 403, "bob may ask for it on a page of his own"
    other = bob.page("POST", path, data=data, headers={"X-Rehome-Token": own_token(ann)})
    in_browser = httpx.Client(cookies={"_token": bob.token})
    nothing = in_browser.post(f"{bob.url}/rehome/{path}", data=data)
    assert (other.status_code, nothing.status_code) == (403, 403)


def test_a_viewer_has_a_few_streams_and_others_have_theirs(
    world: World, people: People, topics: Topics
) -> None:
    """(8) 300 were accepted, which are 300 threads that look into the ledger each second."""
    topic = topics.create([[1, 2]])
    plan_id, moves = f"streamed-{topic}", move(topic, 0, (1, 2), (3, 2), 1000)
    wanted = to(topic, {0: [3, 2]})
    record_planned(world, topics.cluster.cluster_id, plan_id, moves, reassignment=wanted)
    address = f"{world.airflow.url}/rehome/plans/{plan_id}/live"
    with ExitStack() as opened:
        client = opened.enter_context(
            httpx.Client(timeout=60, limits=httpx.Limits(max_connections=STREAMS + 5))
        )

        def stream(person: Person) -> int:
            answer = opened.enter_context(client.stream("GET", address, headers=person.headers))
            return answer.status_code

        codes = [stream(people["viewer"]) for _ in range(STREAMS)]
        assert 1 <= codes.count(200) < STREAMS, "all of them were accepted"
        assert set(codes) <= {200, 429, 503}
        assert stream(people["ann"]) == 200


@pytest.mark.long
def test_hostile_requests_keep_nobody_waiting(people: People) -> None:
    """p99 of 200 calls, beside 100 hostile requests at a time; the median of three runs."""
    url, token = people[""].url, f"Bearer {people['viewer'].token}"
    quiet = statistics.median(_p99(url) for _ in range(3))
    bodies = [*_hostile_bodies().values()]

    def hostile(number: int) -> int:
        headers = {} if number % 2 else {"Authorization": token}
        return post(url, bodies[number % len(bodies)], **headers).status_code

    loud = []
    for _ in range(3):
        with ThreadPoolExecutor(100) as pool:
            asked = [pool.submit(hostile, number) for number in range(100)]
            loud.append(_p99(url))
            assert all(400 <= each.result() < 500 for each in asked)
    found = statistics.median(loud)
    print(f"p99: {quiet * 1e3:.0f} ms alone, {found * 1e3:.0f} ms beside hostile requests")
    assert found <= max(2 * quiet, quiet + 0.2)


def _p99(url: str, calls: int = 200) -> float:
    took = []
    for _ in range(calls):
        begun = time.monotonic()
        _version(url)
        took.append(time.monotonic() - begun)
    return sorted(took)[int(calls * 0.99) - 1]
