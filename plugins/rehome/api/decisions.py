"""What people do to Rehome's DAGs and plans through the API server, on its way to the audit.

Airflow's answers do not wait for it: what is to be recorded goes into a queue of limited length,
and a thread writes it. What cannot be written is logged in full, and counted.
"""

from __future__ import annotations

import atexit
import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rehome.api.airflow_routes import ApiRequest
from rehome.api.bounded import LARGEST_BODY_BYTES
from rehome.api.process_ledger import LEDGER
from rehome.ledger.base.audit_entry import AuditEntry, Decided, Door
from rehome.trigger_check import is_ours

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

LONGEST_QUEUE = 1000
MOST_ENTRIES = 200
"""Runs and tasks of one request that are recorded each for itself."""
LARGEST_ANSWER_BYTES = 2 * LARGEST_BODY_BYTES
TRIED_AGAIN_AFTER_S = (1.0, 5.0, 25.0)
AT_EXIT_S = 5.0
"""How long the end of the process waits for what is not written yet."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A request that Airflow has carried out; read in the thread that records it.

    :param entry: all that is known without its body.
    """

    api_request: ApiRequest
    entry: AuditEntry
    body: bytes
    answer: bytes


class Recorder:
    """The queue, and the thread that empties it.

    :param write: writes an entry to the ledger's audit, or raises.
    :param wait: until it is tried again.
    """

    def __init__(
        self,
        write: Callable[[AuditEntry], None],
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._write, self._wait = write, wait
        self._queue: queue.Queue[Followed | AuditEntry] = queue.Queue(LONGEST_QUEUE)
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self.not_recorded = 0

    def put(self, done: Followed | AuditEntry) -> None:
        """Have it recorded; never waits, never raises."""
        try:
            self._queue.put_nowait(done)
        except queue.Full:
            self._log_lost(done, "too many others wait to be written")
        else:
            self._ensure_started()

    def flush(self, timeout_s: float) -> bool:
        """Wait until everything is written, or was given up; False = it took longer."""
        ends = time.monotonic() + timeout_s
        while self._queue.unfinished_tasks:
            if time.monotonic() > ends:
                return False
            time.sleep(0.01)
        return True

    def _ensure_started(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="rehome-decisions", daemon=True
                )
                self._thread.start()
                atexit.register(self.flush, AT_EXIT_S)

    def _run(self) -> None:
        while True:
            done = self._queue.get()
            try:
                for entry in [done] if isinstance(done, AuditEntry) else entries_of(done):
                    self._record(entry)
            except Exception as error:  # noqa: BLE001 what was sent could not be read
                self._log_lost(done, error)
            finally:
                self._queue.task_done()

    def _record(self, entry: AuditEntry) -> None:
        for pause_s in (*TRIED_AGAIN_AFTER_S, None):
            try:
                self._write(entry)
                return
            except Exception as error:  # noqa: BLE001 whatever it is, the entry is not there
                if pause_s is None:
                    self._log_lost(entry, error)
                    return
                log.warning("A decision is not recorded yet, and is tried again: %s", error)
                self._wait(pause_s)

    def _log_lost(self, done: Followed | AuditEntry, why: Exception | str) -> None:
        self.not_recorded += 1
        log.error(
            "A decision is NOT in the ledger: %s. All that is left of it is %s. So many were lost "
            "since this process began: %s",
            why,
            done if isinstance(done, AuditEntry) else done.entry,
            self.not_recorded,
        )


async def follow_and_record(
    app: ASGIApp,
    what: ApiRequest,
    scope: Scope,
    receive: Receive,
    send: Send,
    user: BaseUser | None = None,
    body: bytes | None = None,
) -> None:
    """Have a request carried out, and record it where that went well.

    :param user: who has sent it, where that is known.
    :param body: of the request, where it was read.
    """
    if what.route.decided is None:
        await app(scope, receive, send)
        return
    sent, answer = _Copy(LARGEST_BODY_BYTES), _Copy(LARGEST_ANSWER_BYTES)
    status = 500

    async def pass_received() -> Message:
        message = await receive()
        if body is None:
            sent.add(message.get("body", b""))
        return message

    async def pass_answer(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
        elif what.route.decided is Decided.TRIGGERED:
            answer.add(message.get("body", b""))
        await send(message)

    try:
        await app(scope, pass_received, pass_answer)
    finally:
        if status < 400:
            whole = sent.content if body is None else body
            await _put(what, what.route.decided, scope, user, whole, answer.content)


class _Copy:
    """What has passed, as far as it is not too large to be kept."""

    def __init__(self, largest: int) -> None:
        self._parts: list[bytes] = []
        self._left = largest

    def add(self, part: bytes) -> None:
        self._left -= len(part)
        if self._left < 0:
            self._parts.clear()
        else:
            self._parts.append(part)

    @property
    def content(self) -> bytes:
        return b"".join(self._parts)


async def _put(
    what: ApiRequest,
    decided: Decided,
    scope: Scope,
    user: BaseUser | None,
    body: bytes,
    answer: bytes,
) -> None:
    from rehome.api import identity

    try:
        person = user if user is not None else await identity.user_of(scope)
        values = what.values
        entry = AuditEntry(
            decided,
            Door.AIRFLOW_API,
            user_id=str(person.get_id()),
            user_name=person.get_name(),
            address=identity.address_of(scope),
            dag_id=what.dag_id or None,
            run_id=_text(values.get("dag_run_id")),
            task_id=_text(values.get("task_id")),
            detail={"method": scope["method"], "answered_at": datetime.now(UTC).isoformat()},
        )
        RECORDER.put(Followed(what, entry, body, answer))
    except Exception:
        log.exception("Who has done %s %s could not be recorded", scope["method"], scope["path"])


def entries_of(done: Followed) -> Iterator[AuditEntry]:
    """What a request has done to Rehome's DAGs; nothing where it was a dry run, or of others."""
    body, answer = _object(done.body), _object(done.answer)
    if done.api_request.route.by_default_dry and body.get("dry_run", True) is not False:
        return
    kept = {key: body[key] for key in _TOLD if key in body}
    if "xcom_key" in done.api_request.values:
        kept["key"] = done.api_request.values["xcom_key"]
    entry = replace(done.entry, detail={**done.entry.detail, **kept}, plan_id=_plan_in(body))
    for dag_id, run_id, task_id in _names_in(body, answer):
        of_dag = dag_id or entry.dag_id
        if of_dag and is_ours(of_dag):
            yield replace(
                entry,
                dag_id=of_dag,
                run_id=run_id or entry.run_id,
                task_id=task_id or entry.task_id,
            )


_TOLD = ("chosen_options", "state", "new_state", "is_paused", "key", "task_ids")
"""What is recorded of a body."""


def _object(text: bytes) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _plan_in(body: dict[str, Any]) -> str | None:
    conf = body.get("conf")
    plan_id = conf.get("plan_id") if isinstance(conf, dict) else None
    return plan_id if isinstance(plan_id, str) and plan_id else None


def _names_in(
    body: dict[str, Any], answer: dict[str, Any]
) -> list[tuple[str | None, str | None, str | None]]:
    """DAG, run and task that the body, or the answer, names; None = it leaves that to the path."""
    entities = [
        *_objects(answer if "dag_id" in answer else None),
        *_objects(body.get("dag_runs")),
        *(
            entity
            for action in _objects(body.get("actions"))
            for entity in _objects(action.get("entities"))
        ),
    ]
    names = [
        (_text(each.get("dag_id")), _text(each.get("dag_run_id")), _text(each.get("task_id")))
        for each in entities or [body]
    ]
    return list(dict.fromkeys(names))[:MOST_ENTRIES]


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; one that is named by its id alone is a run."""
    several = value if isinstance(value, list) else [] if value is None else [value]
    return [one if isinstance(one, dict) else {"dag_run_id": one} for one in several]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value != "~" else None


def to_ledger(entry: AuditEntry) -> None:
    """Append an entry to the audit, with the plan of its run where the run has one."""
    ledger, plan_id = LEDGER.open(), entry.plan_id
    if plan_id is None and entry.dag_id and entry.run_id:
        plan_id = ledger.plan_of_run(entry.dag_id, entry.run_id)
    ledger.add_audit(replace(entry, plan_id=plan_id))


RECORDER = Recorder(to_ledger)
