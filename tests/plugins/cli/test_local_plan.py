"""``rehome plan --local``: what stops it before a cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehome.cli.local_plan import client_settings
from rehome.cli.main import main
from rehome.cli.output import ExitCode

LOCAL = ("plan", "drain", "--brokers", "4", "--local")


def test_a_file_of_kafkas_own_tools_is_read(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("# ours\n\nbootstrap.servers = a:1,b:2\nsasl.password=x=y\n")
    assert client_settings(file) == {"bootstrap.servers": "a:1,b:2", "sasl.password": "x=y"}
    file.write_text('{"bootstrap.servers": "a:1"}')
    assert client_settings(file) == {"bootstrap.servers": "a:1"}


@pytest.mark.parametrize(
    ("words", "text", "code", "named"),
    [
        ((), None, ExitCode.USAGE, "needs --bootstrap or --client-config"),
        (("--client-config", "FILE"), None, ExitCode.USAGE, "cannot be read"),
        (("--client-config", "FILE"), "{", ExitCode.USAGE, "cannot be read"),
        (("--client-config", "FILE"), "bootstrap", ExitCode.USAGE, "line 1, is no key=value"),
        (("--client-config", "FILE"), "a=1\na=2", ExitCode.USAGE, "names 'a' more than once"),
        (
            ("--client-config", "FILE"),
            "bootstrap.servers=a:1\nssl.truststore.location=t.jks",
            ExitCode.USAGE,
            "ssl.truststore.location",
        ),
        (("--bootstrap", "127.0.0.1:1"), None, ExitCode.AWAY, "refused"),
        (
            ("--bootstrap", "127.0.0.1:1", "--preset", "rebalance_tonight"),
            None,
            ExitCode.USAGE,
            "only Airflow knows",
        ),
        (
            ("--bootstrap", "127.0.0.1:1", "--throttle", "fast"),
            None,
            ExitCode.REFUSED,
            "throttle='fast' is neither",
        ),
        (
            ("--bootstrap", "127.0.0.1:1", "--clusters-file", "gone.yaml"),
            None,
            ExitCode.FAILED,
            "gone.yaml",
        ),
    ],
)
def test_a_mistake_is_named_without_a_traceback(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    text: str | None,
    code: ExitCode,
    named: str,
) -> None:
    file = tmp_path / "client"
    if text is not None:
        file.write_text(text)
    asked = [word.replace("FILE", str(file)) for word in words]
    assert main([*LOCAL, *asked]) == code
    said = capsys.readouterr()
    assert named in said.err
    assert said.out == ""
