"""How tasks reach a cluster, the ledger and the warehouse through Airflow."""

from __future__ import annotations

import json

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome import installation
from rehome.errors import InvalidConnectionError, InvalidRequestError
from rehome.hooks.cluster import KafkaClusterHook
from rehome.settings import Settings
from tests.rights import PLANNER, REASSIGNER, Right, granted


def connect(monkeypatch: pytest.MonkeyPatch, name: str, **values: object) -> None:
    monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps(values))


def test_a_connection_that_works_says_how_and_as_whom(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch, "kafka_one", conn_type="kafka", extra=cluster.client_settings())
    works, reported = KafkaClusterHook("kafka_one").test_connection()
    assert works, reported
    assert cluster.cluster_id in reported


@pytest.mark.parametrize(
    ("rights", "works", "said"),
    [
        ((), False, "But it cannot read the cluster: it lacks Cluster Describe"),
        (PLANNER, True, "It may plan and try plans out. To carry them out it lacks Cluster Alter"),
        (REASSIGNER, True, "It has every right that a plan needs."),
    ],
)
def test_it_says_which_rights_the_principal_lacks(
    secured_cluster: LocalCluster,
    monkeypatch: pytest.MonkeyPatch,
    rights: tuple[Right, ...],
    works: bool,
    said: str,
) -> None:
    extra = secured_cluster.client_settings("nobody")
    connect(monkeypatch, "kafka_rights", conn_type="kafka", extra=extra)
    hook = KafkaClusterHook("kafka_rights")
    with granted(secured_cluster, "nobody", *rights):
        assert said in wait_until(lambda: _told(hook, works), "brokers to know the rights")


def _told(hook: KafkaClusterHook, works: bool) -> str:
    """What the test says, "" while brokers do not yet know the rights."""
    found, reported = hook.test_connection()
    return reported if found is works else ""


def test_a_connection_that_fails_names_the_cause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extra = {"bootstrap.servers": "127.0.0.1:1"}
    connect(monkeypatch, "kafka_none", conn_type="kafka", extra=extra)
    works, reported = KafkaClusterHook("kafka_none").test_connection()
    assert not works
    assert "refused" in reported


def test_a_connection_without_servers_is_reported_so(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch, "kafka_empty", conn_type="kafka", extra={})
    works, reported = KafkaClusterHook("kafka_empty").test_connection()
    assert not works
    assert "bootstrap.servers" in reported


def test_a_connection_of_the_environment_that_airflow_cannot_read_is_named_and_not_taken_for_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_ONE", '{"conn_type": "kafka",}')
    with pytest.raises(InvalidConnectionError, match="AIRFLOW_CONN_KAFKA_ONE in the environment"):
        KafkaClusterHook("kafka_one").connection  # noqa: B018 - read for what is wrong with it
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_ONE", "")
    with pytest.raises(InvalidConnectionError, match="There is no such connection"):
        KafkaClusterHook("kafka_one").connection  # noqa: B018


@pytest.mark.parametrize("conn_type", ["postgres", "spark", "http", None])
def test_nothing_is_read_from_a_connection_of_another_type(
    conn_type: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run's parameters may name any: what is said of it is its id."""
    extra = {"bootstrap.servers": "secret:9092", "rehome.policy": {"approval": True}}
    connect(monkeypatch, "ledger", conn_type=conn_type, host="secret", password="x", extra=extra)
    hook = KafkaClusterHook("ledger")
    for read in (lambda: hook.connection, lambda: hook.policy):
        with pytest.raises(InvalidConnectionError) as refused:
            read()
        assert refused.value.problems == ("It is neither of type rehome_kafka nor of type kafka.",)


@pytest.fixture
def fresh_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow is asked for the settings at each call."""
    monkeypatch.setattr(installation, "SETTINGS_LAST_S", 1e-9)


@pytest.mark.usefixtures("fresh_settings")
def test_the_variable_overrides_settings_and_the_connection_the_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_REHOME", '{"stall_timeout_s": 7}')
    connect(
        monkeypatch,
        "rehome_ledger",
        conn_type="postgres",
        host="db.example.com",
        login="rehome",
        password="p@ss/word",
        schema="ledger",
        port=5432,
    )
    found = installation.settings()
    assert found.stall_timeout_s == 7.0
    assert found.ledger_url == "postgresql://rehome:p%40ss%2Fword@db.example.com:5432/ledger"


@pytest.mark.usefixtures("fresh_settings")
def test_no_other_ledger_is_opened_where_the_settings_say_that_it_is_the_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("REHOME_LEDGER_URL", "sqlite:////elsewhere/ledger.db")
    assert installation.settings().ledger_url == "sqlite:////elsewhere/ledger.db"
    monkeypatch.setenv("REHOME_LEDGER_IS_CONNECTION", "true")
    with pytest.raises(InvalidRequestError, match="rehome_ledger is not found, and no other"):
        installation.settings()
    connect(monkeypatch, "rehome_ledger", conn_type="postgres", host="db.example", schema="rehome")
    assert installation.settings().ledger_url == "postgresql://db.example/rehome"
    monkeypatch.setenv("AIRFLOW_VAR_REHOME", '{"ledger_is_connection": false}')
    with pytest.raises(InvalidRequestError, match="sets ledger_is_connection, which has no effect"):
        installation.settings()


def test_airflow_is_asked_for_the_settings_once_for_all_that_a_task_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installation.settings()
    monkeypatch.setenv("AIRFLOW_VAR_REHOME", '{"stall_timeout_s": 7}')
    monkeypatch.setenv("REHOME_POLL_INTERVAL_S", "3")
    monkeypatch.setattr(installation, "SETTINGS_LAST_S", 1e9)  # no period ends while the test runs
    first = installation.settings()
    monkeypatch.setenv("AIRFLOW_VAR_REHOME", '{"stall_timeout_s": 8}')
    assert installation.settings() == first
    assert (first.stall_timeout_s, first.poll_interval_s) == (7.0, 3.0)
    monkeypatch.setattr(installation, "SETTINGS_LAST_S", 1e-9)
    assert installation.settings().stall_timeout_s == 8.0


@pytest.mark.usefixtures("fresh_settings")
def test_an_unknown_setting_in_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_REHOME", '{"patience": 7}')
    with pytest.raises(InvalidRequestError, match="patience"):
        installation.settings()


@pytest.mark.usefixtures("fresh_settings")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"stall_timeout_s": 7,}', "is not valid JSON: "),
        ('{"stall_timeout_s": 7, "stall_timeout_s": 8}', "names 'stall_timeout_s' more than once"),
        ('["stall_timeout_s"]', "is no JSON object"),
        ("null", "is no JSON object"),
    ],
)
def test_a_variable_that_is_no_json_object_is_refused_and_not_taken_for_none(
    monkeypatch: pytest.MonkeyPatch, text: str, problem: str
) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_REHOME", text)
    with pytest.raises(InvalidRequestError, match=f"The Variable rehome {problem}"):
        installation.settings()
    monkeypatch.setenv("AIRFLOW_VAR_REHOME", "")
    assert installation.settings() == Settings.load()


@pytest.mark.usefixtures("fresh_settings")
def test_a_connection_to_the_ledger_that_airflow_cannot_read_is_refused_and_not_taken_for_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_REHOME_LEDGER", '{"conn_type": "postgres", "host": "db",}')
    with pytest.raises(InvalidRequestError, match="AIRFLOW_CONN_REHOME_LEDGER in the environment"):
        installation.settings()


@pytest.mark.usefixtures("fresh_settings")
def test_a_clusters_file_in_the_variable_is_refused_with_where_it_belongs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW_VAR_REHOME", '{"clusters_file": "clusters.yaml"}')
    with pytest.raises(InvalidRequestError, match="set REHOME_CLUSTERS_FILE in the environment"):
        installation.settings()
