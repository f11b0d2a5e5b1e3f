"""People of an Airflow, each with the rights of a role, and what they may do by its public API.

An attack is made of these calls alone; none of them is Rehome's own code.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import httpx

from local.process.waiting import wait_until

ENDED = frozenset({"success", "failed"})
OVER = ENDED | {"skipped", "upstream_failed", "removed"}
TRIED = OVER | {"up_for_retry"}
"""States of a task that has had its turn."""
HEARD_AFTER_S = 3.0
"""Who answers before the scheduler has seen the asking worker end is not heard."""
RETURNED = "return_value"
UNREAD = False
"""Certificates, which httpx would read for each request, in 30 ms: these go by http."""


class Person:
    """One user of Airflow's API; ``name`` "" = nobody has logged in.

    :param url: of Airflow.
    """

    def __init__(self, url: str, name: str = "", password: str = "") -> None:
        self.url, self.name, self._password = url, name, password
        # The server ends connections that rest.
        headers = {"connection": "close"}
        if name:
            who = {"username": name, "password": password}
            answer = httpx.post(f"{url}/auth/token", json=who, timeout=120, verify=UNREAD)
            answer.raise_for_status()
            self.token = str(answer.json()["access_token"])
            headers["Authorization"] = f"Bearer {self.token}"
        self.headers = headers

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        """Ask Airflow's public API; whatever it answers."""
        url = f"{self.url}/api/v2{path}"
        if body is not None:
            more["json"] = body
        more |= {"headers": self.headers, "timeout": 120, "verify": UNREAD}
        return httpx.request(method, url, **more)

    def does(self, method: str, path: str, body: Any = None) -> Any:
        """Ask for what this user may do."""
        answer = self.ask(method, path, body)
        why = f"{self.name}: {method} {path}: {answer.status_code} {answer.text}"
        assert answer.is_success, why
        return answer.json() if answer.content else None

    def page(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Ask Rehome's page."""
        headers = self.headers | more.pop("headers", {})
        more |= {"headers": headers, "verify": UNREAD}
        return httpx.request(method, f"{self.url}/rehome/{path}", **more)

    # Runs

    def triggers(self, dag_id: str, conf: Mapping[str, Any], **more: Any) -> Run:
        """Start a run."""
        body = {"logical_date": None, "conf": dict(conf), **more}
        found = self.does("POST", f"/dags/{dag_id}/dagRuns", body)
        return Run(dag_id, found["dag_run_id"])

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """The newest first."""
        found = self.does("GET", f"/dags/{dag_id}/dagRuns?order_by=-run_after&limit=50")
        return list(found["dag_runs"])

    def state(self, run: Run) -> str:
        """Of a run."""
        return str(self.does("GET", run.path)["state"])

    def states(self, run: Run) -> dict[str, str | None]:
        """Of each task."""
        found = self.does("GET", f"{run.path}/taskInstances")["task_instances"]
        return {each["task_id"]: each["state"] for each in found}

    def wait(self, run: Run, task: str, states: Iterable[str], timeout_s: float = 240) -> str:
        """Wait until a task is in one of these states; which."""

        def reached() -> str:
            state = self.does("GET", run.task(task))["state"]
            return state if state in states else ""

        try:
            return wait_until(reached, f"{task} to be {sorted(states)}", timeout_s, 0.5)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; tasks: {self.states(run)}") from None

    def wait_for_end(self, run: Run, timeout_s: float = 240) -> str:
        """Wait for the end of a run."""

        def ended() -> str:
            state = self.state(run)
            return state if state in ENDED else ""

        try:
            return wait_until(ended, f"{run.run_id} to end", timeout_s, 0.5)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; tasks: {self.states(run)}") from None

    def log(self, run: Run, task: str) -> str:
        """Of a task's newest attempt."""
        attempt = self.does("GET", run.task(task))["try_number"]
        found = self.does("GET", f"{run.task(task)}/logs/{attempt}?full_content=true")
        return "\n".join(
            each if isinstance(each, str) else str(each.get("event", ""))
            for each in found["content"]
        )

    # What is taken for truth

    def xcoms(self, run: Run, task: str) -> list[str]:
        """The keys of a task's XComs."""
        found = self.does("GET", f"{run.task(task)}/xcomEntries?limit=100")["xcom_entries"]
        return [each["key"] for each in found]

    def xcom(self, run: Run, task: str, key: str = RETURNED) -> Any:
        """One of them."""
        return self.does("GET", f"{run.task(task)}/xcomEntries/{key}")["value"]

    def forges(self, run: Run, task: str, value: Any, key: str = RETURNED) -> None:
        """Write an XCom, whether it is there or not."""
        where = f"{run.task(task)}/xcomEntries"
        there = self.ask("PATCH", f"{where}/{key}", {"value": value, "map_index": -1})
        if not there.is_success:
            self.does("POST", where, {"key": key, "value": value, "map_index": -1})

    def removes(self, run: Run, task: str, key: str = RETURNED) -> None:
        """Delete an XCom."""
        self.does("DELETE", f"{run.task(task)}/xcomEntries/{key}")

    def marks(self, run: Run, task: str, state: str) -> None:
        """Set a task to a state by hand."""
        self.does("PATCH", run.task(task), {"new_state": state})

    def clears(self, run: Run, *tasks: str) -> None:
        """Have tasks carried out again."""
        body = {
            "dry_run": False,
            "only_failed": False,
            "only_running": False,
            "reset_dag_runs": True,
            "dag_run_id": run.run_id,
            "task_ids": list(tasks),
        }
        self.does("POST", f"/dags/{run.dag_id}/clearTaskInstances", body)

    def has_done_again(self, run: Run, task: str) -> str:
        """Clear a task, and wait until it has had its turn; its state then.

        A run that the scheduler is about to end would end with the task cleared, and stay so.
        """
        if self.does("GET", run.task(task))["state"] in OVER:
            self.wait_for_end(run)
        self.clears(run, task)
        return self.wait(run, task, TRIED)

    # Questions to people

    def question(self, run: Run, task: str = "approve") -> dict[str, Any] | None:
        """What a task asks people now; None = nothing is open."""
        if self.does("GET", run.task(task))["state"] != "awaiting_input":
            return None
        answer = self.ask("GET", f"{run.task(task)}/-1/hitlDetails")
        if not answer.is_success:
            return None
        found: dict[str, Any] = answer.json()
        return None if found["response_received"] else found

    def waits_for_question(self, run: Run, task: str = "approve") -> dict[str, Any]:
        """The question, once a run has come so far.

        :raises AssertionError: it has ended, or gone on, without one.
        """
        found: list[dict[str, Any]] = []

        def asked() -> bool:
            state = self.does("GET", run.task(task))["state"]
            assert state not in OVER, f"{task} is {state}: {self.states(run)}"
            if question := self.question(run, task):
                found.append(question)
            return bool(found)

        wait_until(asked, f"{task} to ask", 240, 0.5)
        return found[0]

    def answers(
        self, run: Run, option: str, task: str = "approve", inputs: Any = None
    ) -> httpx.Response:
        """Choose the option that begins so, as a question has it."""
        where = f"{run.task(task)}/-1/hitlDetails"
        offered = self.does("GET", where)["options"]
        chosen = next((each for each in offered if each.startswith(option)), option)
        body = {"chosen_options": [chosen], "params_input": inputs or {}}
        return self.ask("PATCH", where, body)

    def insists(
        self,
        run: Run,
        until: Callable[[], object] = lambda: False,
        *,
        times: int = 6,
        option: str = "Approve",
        timeout_s: float = 240,
    ) -> None:
        """Answer whatever a run asks, so often at most, until it has ended or something is so.

        Who answers before the scheduler has seen the asking worker end is not heard, and is asked
        again.
        """
        given, open_since = 0, 0.0

        def over() -> bool:
            nonlocal given, open_since
            if until() or self.state(run) in ENDED:
                return True
            if self.question(run) is None:
                open_since = 0.0
            elif given >= times:
                return True
            elif not open_since:
                open_since = time.monotonic()
            elif time.monotonic() - open_since > HEARD_AFTER_S:
                given += self.answers(run, option).is_success
                open_since = 0.0
            return False

        with suppress(TimeoutError):
            wait_until(over, "the run to end", timeout_s, 0.5)


class Run:
    """One run of a DAG."""

    def __init__(self, dag_id: str, run_id: str) -> None:
        self.dag_id, self.run_id = dag_id, run_id

    def __repr__(self) -> str:
        return f"{self.dag_id}/{self.run_id}"

    @property
    def path(self) -> str:
        """Of the run in the API."""
        return f"/dags/{self.dag_id}/dagRuns/{self.run_id}"

    def task(self, task: str) -> str:
        """Of one of its tasks in the API."""
        return f"{self.path}/taskInstances/{task}"
