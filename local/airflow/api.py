"""A client of Airflow's public API: runs, tasks, logs, and what a person does in the UI."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from typing import Any

import httpx

from local.process.waiting import wait_until

ANSWER_TIMEOUT_S = 120.0
"""Just started on a busy machine, the API server may take most of a minute for an answer."""
ENDED = frozenset({"success", "failed"})
DATABASE_BUSY_S = 30.0
"""So long a request is repeated that Airflow's database did not take, as SQLite does when two write
at once. Airflow has rolled it back then: nothing is done twice."""
BETWEEN_S = 0.5


class AirflowApi:
    """Asks one Airflow's API as one user.

    :param url: where UI and API are, with the path prefix where there is one.
    """

    def __init__(self, url: str, user: str, password: str) -> None:
        self._user, self._password = user, password
        self._client = httpx.Client(base_url=url, timeout=ANSWER_TIMEOUT_S)

    def close(self) -> None:
        """Close the connections. Idempotent."""
        self._client.close()

    def serves(self, dags: Collection[str]) -> bool:
        """Whether every component is healthy and these DAGs are there."""
        try:
            health = self._client.get("/api/v2/monitor/health")
            parts = health.json().values() if health.is_success else []
            if not parts or any(part["status"] not in ("healthy", None) for part in parts):
                return False
            self._authenticate()
            return all(self._client.get(f"/api/v2/dags/{dag}/details").is_success for dag in dags)
        except httpx.TransportError:
            return False

    def trigger(self, dag_id: str, conf: Mapping[str, Any] | None = None) -> str:
        """Start a run as the form does; returns its run id.

        :raises httpx.HTTPStatusError: a value is outside its Param's schema.
        """
        body = {"logical_date": None, "conf": dict(conf or {})}
        return str(self.ask("POST", f"/dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def set_paused(self, dag_id: str, *, paused: bool) -> None:
        """What the switch in the UI does: a paused DAG's schedule starts no runs."""
        self.ask("PATCH", f"/dags/{dag_id}", {"is_paused": paused})

    def edit_connection(self, name: str, kind: str, extra: Mapping[str, Any]) -> None:
        """What a person does who edits a connection in the UI."""
        body = {"connection_id": name, "conn_type": kind, "extra": json.dumps(dict(extra))}
        self.ask("PATCH", f"/connections/{name}", body)

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """The DAG's newest runs, newest first, as the API returns them."""
        answer = self.ask("GET", f"/dags/{dag_id}/dagRuns?order_by=-run_after&limit=50")
        return list(answer["dag_runs"])

    def run_state(self, dag_id: str, run_id: str) -> str:
        """The run's state."""
        return str(self.ask("GET", f"/dags/{dag_id}/dagRuns/{run_id}")["state"])

    def run_note(self, dag_id: str, run_id: str) -> str:
        """The run's note; "" = it has none."""
        return str(self.ask("GET", f"/dags/{dag_id}/dagRuns/{run_id}")["note"] or "")

    def set_run_state(self, dag_id: str, run_id: str, state: str) -> None:
        """What a person does who marks the run failed, or successful, in the UI."""
        self.ask("PATCH", f"/dags/{dag_id}/dagRuns/{run_id}", {"state": state})

    def wait_for_run(self, dag_id: str, run_id: str, timeout_s: float = 600.0) -> str:
        """Wait for the run's end; returns its state.

        :raises TimeoutError: naming the tasks' states.
        """
        try:
            return wait_until(
                lambda: self._ended(dag_id, run_id), f"run {run_id} to end", timeout_s, 2.0
            )
        except TimeoutError as error:
            raise TimeoutError(f"{error}; tasks: {self.task_states(dag_id, run_id)}") from None

    def _ended(self, dag_id: str, run_id: str) -> str:
        state = self.run_state(dag_id, run_id)
        return state if state in ENDED else ""

    def task_states(self, dag_id: str, run_id: str) -> dict[str, str | None]:
        """Each task's state; None = not scheduled yet."""
        return {ti["task_id"]: ti["state"] for ti in self.task_instances(dag_id, run_id)}

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """The run's task instances, as the API returns them."""
        answer = self.ask("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances")
        return list(answer["task_instances"])

    def task_instance(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """One task's newest attempt: a fraction of the work of telling all of them."""
        where = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        return dict(self.ask("GET", where))

    def task_log(self, dag_id: str, run_id: str, task_id: str, attempt: int = 1) -> str:
        """The text of a task's log, one line per entry."""
        where = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{attempt}"
        answer = self.ask("GET", f"{where}?full_content=true")
        entries = answer["content"]
        return "\n".join(
            entry if isinstance(entry, str) else str(entry.get("event", "")) for entry in entries
        )

    def answer(self, dag_id: str, run_id: str, task_id: str, option: str) -> None:
        """What a person does who approves or rejects in the UI.

        :param option: its first word: the one to approve resumes a code.
        """
        where = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/-1/hitlDetails"
        offered = self.ask("GET", where)["options"]
        chosen = [each for each in offered if each.split()[0] == option] or [option]
        self.ask("PATCH", where, {"chosen_options": chosen[:1], "params_input": {}})

    def page(self, path: str) -> str:
        """A page of Rehome as HTML: ``plans/<plan id>``.

        :raises httpx.HTTPStatusError: it is not there, or not for this user.
        """
        self._authenticate()
        answer = self._client.get(f"/rehome/{path}")
        answer.raise_for_status()
        return answer.text

    def _authenticate(self) -> None:
        if "Authorization" in self._client.headers:
            return
        answer = self._client.post(
            "/auth/token", json={"username": self._user, "password": self._password}
        )
        answer.raise_for_status()
        self._client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer to any request, path from /api/v2 on.

        :raises httpx.HTTPStatusError: with what Airflow says.
        """
        self._authenticate()
        deadline = time.monotonic() + DATABASE_BUSY_S
        answer = self._client.request(method, f"/api/v2{path}", json=body)
        while _is_database_busy(answer) and time.monotonic() < deadline:
            time.sleep(BETWEEN_S)
            answer = self._client.request(method, f"/api/v2{path}", json=body)
        if answer.is_error:
            raise httpx.HTTPStatusError(
                f"{method} {path}: {answer.status_code} {answer.text}",
                request=answer.request,
                response=answer,
            )
        return answer.json()


def _is_database_busy(answer: httpx.Response) -> bool:
    """Whether Airflow answered with its general error of the database."""
    return (
        answer.status_code == httpx.codes.INTERNAL_SERVER_ERROR and "Database error" in answer.text
    )
