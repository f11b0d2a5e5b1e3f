"""Second attempts. The refusals are made up: a broker gives them for milliseconds, by chance."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from rehome.cluster.clients import clients as clients_module
from rehome.cluster.clients import librdkafka as librdkafka_module
from rehome.cluster.clients.clients import CONTROLLER_ATTEMPTS, Clients
from rehome.cluster.clients.librdkafka import CallTimedOutError, Librdkafka
from rehome.cluster.connection.settings import Connection
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.rights import Call

ANYWHERE = Connection.from_settings({"bootstrap.servers": "127.0.0.1:1"})


class AnsweringWire:
    def __init__(self, codes: list[int]) -> None:
        self.codes = codes

    def ask_any(self, request: object) -> Any:
        return SimpleNamespace(error_code=self.codes.pop(0), error_message=None)


def clients_with(codes: list[int], monkeypatch: pytest.MonkeyPatch) -> Clients:
    monkeypatch.setattr(Clients, "controller", AnsweringWire(codes))
    monkeypatch.setattr(clients_module, "CONTROLLER_PAUSE_S", 0.0)
    return Clients(ANYWHERE, 1.0, 1.0)


def test_a_controller_that_just_changed_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = [ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER, 0]
    clients_with(codes, monkeypatch).ask_controller(Call.LIST_REASSIGNMENTS, object())
    assert not codes


def test_a_cluster_that_finds_no_controller_is_not_asked_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes: list[int] = [ErrorCode.NOT_CONTROLLER] * 10
    clients = clients_with(codes, monkeypatch)
    with pytest.raises(ClusterError, match=r"NOT_CONTROLLER \(41\)"):
        clients.ask_controller(Call.LIST_REASSIGNMENTS, object())
    assert len(codes) == 10 - CONTROLLER_ATTEMPTS


def admin_clients(monkeypatch: pytest.MonkeyPatch, outcomes: list[str | None]) -> list[object]:
    """Each new client meets the next outcome: a timeout's text, or success."""
    made: list[object] = []

    class Admin:
        def __init__(self, settings: dict[str, Any]) -> None:
            made.append(self)
            self.outcome = outcomes.pop(0)

        def create_partitions(self, new: list[Any], **options: Any) -> dict[str, Future[None]]:
            future: Future[None] = Future()
            if self.outcome is None:
                future.set_result(None)
            else:
                error = KafkaError(KafkaError._TIMED_OUT, self.outcome)
                future.set_exception(KafkaException(error))
            return {"t": future}

    monkeypatch.setattr(librdkafka_module, "AdminClient", Admin)
    return made


def librdkafka() -> Librdkafka:
    return Librdkafka(ANYWHERE, client_id="test", request_timeout_s=1.0, connect_timeout_s=1.0)


NEVER_SENT = "Failed while waiting for controller: Local: Timed out"


def test_a_fresh_client_takes_over_from_one_that_waits_for_a_dead_controller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = admin_clients(monkeypatch, [NEVER_SENT, None])
    assert librdkafka().create_partitions({"t": 2}, {}, validate_only=True) == {"t": None}
    assert len(made) == 2


@pytest.mark.parametrize(
    ("outcomes", "sent"),
    [([NEVER_SENT, NEVER_SENT], False), (["Failed while waiting for response", None], True)],
)
def test_a_call_is_not_repeated_for_ever_nor_if_a_broker_may_have_received_it(
    monkeypatch: pytest.MonkeyPatch, outcomes: list[str | None], sent: bool
) -> None:
    made = admin_clients(monkeypatch, outcomes)
    with pytest.raises(CallTimedOutError) as raised:
        librdkafka().create_partitions({"t": 2}, {}, validate_only=False)
    assert raised.value.sent is sent
    assert len(made) == (1 if sent else 2)
